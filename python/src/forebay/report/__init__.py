"""What a person sees of profiles: the terminal, one HTML page, one PDF."""
