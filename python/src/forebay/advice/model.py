"""What a finding is."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["problem", "suggestion", "note"]
#: Of the time bar; what they mean: `forebay.profiles.time_parts.Parts`.
Part = Literal["write", "read", "rmw", "waiting", "metadata", "sync"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A counter that a finding rests on, as the source names it, with its unit."""

    counter: str
    value: int | float | str | None
    unit: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing worth telling, and what to do about it."""

    code: str  # stable, e.g. "collective-buffering-off"
    level: Level  # problem: costs time or safety; suggestion: a setting worth trying; note: good to know
    title: str  # one sentence
    file: str | None  # path; None: the whole job
    evidence: tuple[Evidence, ...]
    rule: str  # the rule, in words
    source: str  # who published it, or "measured" with where
    action: str  # what to do, one or two sentences
    lines: tuple[str, ...] = ()  # to be added to the job script, literally
    parts: tuple[Part, ...] = ()  # of the time bar that it is about
    seconds: float | None = None  # of run time that is at stake at most (slowest rank); None: not known
