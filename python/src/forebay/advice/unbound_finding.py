"""A finding before its lines for the job script are known: those depend on all findings together."""

from __future__ import annotations

import msgspec

from forebay.advice.model import Evidence, Level, Part


class Draft(msgspec.Struct, kw_only=True):
    """Members as in `Finding`; and what the file needs: hints, an allocation, stripes."""

    code: str
    level: Level
    title: str
    evidence: tuple[Evidence, ...]
    rule: str
    source: str
    action: str
    file: str | None = None
    hints: dict[str, str] = {}
    lines: tuple[str, ...] = ()
    allocation_bytes: float | None = None  # that a burst buffer has to hold
    stripes: tuple[str, int] | None = None  # a directory, and on how many storage targets its files should be
    parts: tuple[Part, ...] = ()
    seconds: float | None = None
