"""Errors of the tuner."""

from forebay.errors import ForebayError


class TuneError(ForebayError):
    """The job cannot be tuned, or not so: what, where, and what to do."""
