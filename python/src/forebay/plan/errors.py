"""The error of the planner."""

from forebay.errors import ForebayError


class PlanError(ForebayError):
    """A machine file, a pattern or a question that the planner cannot use, with the remedy."""
