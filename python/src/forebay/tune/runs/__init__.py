"""One run: its directory, its process, what it wrote, and whether it counts."""
