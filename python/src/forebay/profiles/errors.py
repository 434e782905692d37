"""Errors of the rooms for profiles."""

from forebay.errors import ForebayError


class ProfileError(ForebayError):
    """A source cannot be read."""
