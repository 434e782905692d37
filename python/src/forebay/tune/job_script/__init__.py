"""What a user's job script says: its statements, its launch line, the settings it makes itself."""
