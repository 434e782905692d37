"""What is known about the I/O of one job, whatever recorded it: one model, one reader for each source."""
