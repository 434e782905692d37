"""A finding before its lines for the job script are known: those depend on all findings together."""

from __future__ import annotations

import msgspec

from forebay.advice.model import Evidence, Level


class Draft(msgspec.Struct, kw_only=True):
    """Members as in `Finding`; and the hints that the file needs."""

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
    seconds: float | None = None
