"""What a form makes of settings: lines to add, and lines of the user's to change."""

from __future__ import annotations

import msgspec

from forebay.tune.job_script.script import JobScript
from forebay.tune.model import Machine

#: Pattern -> hint -> value, as in MPICH_MPIIO_HINTS.
Hints = dict[str, dict[str, str]]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line to add."""

    text: str
    carries: frozenset[str] = frozenset()  # names of the parameters that it sets
    variable: str | None = None  # that it sets: it comes behind what the user's script makes of that


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of the user's script in other words."""

    first: int  # index of its first line, and of the line behind it
    end: int
    text: str
    carries: frozenset[str]
    is_directive: bool = False  # no shell reads it, and it has a meaning with the burst buffer alone


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """For whom lines are made."""

    script: JobScript
    machine: Machine

    def sets(self, variable: str) -> bool:
        """Does the script, or the environment it is started from, set it already?"""
        by_script = any(own.variable == variable for own in self.script.assignments)
        return by_script or variable in self.script.inherited


def grouped(texts: list[str], carries: frozenset[str], variable: str | None = None) -> list[Line]:
    """Lines that belong together; their comment is before the first."""
    nothing: frozenset[str] = frozenset()
    return [
        Line(text=text, carries=nothing if at else carries, variable=variable)
        for at, text in enumerate(texts)
    ]


def is_open_mpi(mpi: str | None) -> bool:
    """By what the MPI calls itself."""
    return "open mpi" in (mpi or "").lower()
