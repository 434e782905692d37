"""Errors of simulations."""

from forebay.errors import ForebayError


class SimulationError(ForebayError):
    """The description of a site or its jobs cannot be played: what, where, and what to do."""
