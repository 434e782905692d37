"""Predicts the I/O of a job on a machine that a file describes, and says how much burst buffer it needs."""
