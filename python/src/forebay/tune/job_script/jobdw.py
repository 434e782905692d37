"""The `#DW jobdw` line of a script: where it stands, and what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_STAGE_IN = re.compile(r"#DW\s+stage_in\b")
_BEGIN = re.compile(r"#DW\s+jobdw\b")


class JobDwLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of DataWarp; those of NNF have no access mode, and other keys."""

    first: int  # index of its first line, and of the line behind it
    end: int
    values: dict[str, str]  # as written
    stages_in: bool  # into the allocation


def jobdw_line(header: Sequence[str]) -> JobDwLine | None:
    """The line in a script's header; None: there is none of DataWarp."""
    for first, text in enumerate(header):
        if not _BEGIN.match(text):
            continue
        end = first + 1
        while end < len(header) and header[end - 1].rstrip().endswith("\\"):
            end += 1
        words = " ".join(row.rstrip().removesuffix("\\") for row in header[first:end]).split()
        values = {key: value for key, is_set, value in (word.partition("=") for word in words) if is_set}
        is_datawarp = "access_mode" in values or "access" in values
        stages_in = any(_STAGE_IN.match(row) for row in header)
        made = JobDwLine(first=first, end=end, values=values, stages_in=stages_in)
        return made if is_datawarp else None
    return None
