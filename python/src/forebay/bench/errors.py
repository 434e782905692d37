"""Errors of benchmarks."""

from forebay.errors import ForebayError


class BenchError(ForebayError):
    """The benchmark cannot run, or a phase failed: what, where, and what to do."""
