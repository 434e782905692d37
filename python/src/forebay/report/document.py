"""What a report consists of, before it is a page, a PDF or lines in a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from forebay import quantities

if TYPE_CHECKING:
    from forebay.advice.model import Finding
    from forebay.report.charts.svg_figure import Chart

#: What a name may hold that is not shown as it is: control and format characters, text direction, lone
#: surrogates (bytes of a name that are no UTF-8, as `os.fsdecode` gives them).
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def escape_hidden(text: str) -> str:
    """Text of unknown origin in characters that can be seen, as C writes them: `a\\nb`, `caf\\xe9`."""
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    short = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    return short.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


@dataclass
class Cell:
    """A cell: what is shown, and the number it is sorted by."""

    text: str
    number: float | None = None


def number_cell(value: float | None, how: Callable[[float | None], str] = quantities.count) -> Cell:
    """A cell with a number."""
    return Cell(how(value), value)


@dataclass
class Column:
    """A column of a table. Of a `word` no letter wraps: it is for short ones only."""

    name: str
    kind: Literal["text", "word", "number", "path"] = "number"


@dataclass
class Table:
    """A table with its caption. `rest` says how many rows are not shown."""

    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    rest: str | None = None
    sortable: bool = False
    folded: bool = False  # on a screen opened by a click; on paper open
    charted: bool = False  # a chart has the same values: folded on a screen, not on paper


def columns(first: str, *numbers: str, kind: Literal["text", "path"] = "text") -> list[Column]:
    """A column of text and columns of numbers."""
    return [Column(first, kind), *(Column(name) for name in numbers)]


@dataclass
class Listing:
    """Lines to read, with their caption: `+` and `-` as in a diff, or, to be copied, plain."""

    caption: str
    lines: list[str]
    to_copy: bool = False


@dataclass
class Section:
    """Part of a report on one job. Sections of one key stand side by side."""

    key: str
    name: str  # what it is about
    title: str  # what is seen, in one sentence
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    charts_narrow: list[Chart] = field(default_factory=list)  # in place of `charts` on a phone
    listings: list[Listing] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)  # text, address


@dataclass
class Tile:
    """A number to be seen first."""

    name: str
    value: str
    note: str = ""


@dataclass
class JobReport:
    """The report of one job: the sections of the job, then those of each program."""

    label: str  # A, B, ... in a comparison; else empty
    name: str
    verdicts: list[str]  # one sentence each
    paragraph: str
    tiles: list[Tile]
    lead: list[Chart]  # seen first
    lead_narrow: list[Chart]  # the same for the width of a phone
    findings: list[Finding]
    sections: list[Section]
    programs: list[tuple[str, list[Section]]]
    #: Shares of the run time of the slowest rank, by ink; empty if they are not known.
    parts: dict[str, float] = field(default_factory=dict)
