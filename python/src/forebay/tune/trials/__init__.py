"""What the trials of a search say: their history, and a regression over it."""
