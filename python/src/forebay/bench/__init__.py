"""Benchmarks of file systems: the phases of IO500 on any directory, on one node or several."""
