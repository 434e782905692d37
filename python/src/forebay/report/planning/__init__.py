"""A plan for the terminal and as a page: what each storage of a machine gives, and the curves of a sweep."""
