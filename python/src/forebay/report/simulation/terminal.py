"""The summary of a simulation in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from forebay.report.document import escape_hidden
from forebay.report.simulation import sentences
from forebay.report.terminal import grid, print_parts
from forebay.simulate.simulation import Simulation


def print_summary(console: Console, found: Simulation) -> None:
    """The verdict, how it was found, and the table."""
    print_parts(
        console,
        [
            Text(escape_hidden(sentences.verdict(found)), style="bold"),
            Text(escape_hidden(sentences.paragraph(found))),
            "",
            grid(sentences.short_table(found), rows_max=len(found.rows)),
        ],
    )
