"""The summary of a study in the terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text

from forebay.report.document import shown
from forebay.report.terminal import ToCopy, grid, print_parts
from forebay.report.tuning import sentences, tables
from forebay.report.tuning.figures import StudyFigures, figures
from forebay.report.tuning.records import added_lines
from forebay.tune.study import Study


def print_summary(console: Console, study: Study) -> None:
    """Verdicts, the table of default and tuned, the lines added, the cost."""
    told = figures(study)
    parts: list[RenderableType] = [Text(shown(one), style="bold") for one in sentences.verdicts(told)]
    table = tables.outcome(told)
    if table.rows:
        parts += ["", Text(shown(table.caption), style="bold"), grid(table)]
    if study.runs:
        parts.append(Text(f"\n{_cost(told)}"))
    parts.append(Text(shown(sentences.ending(told))))
    for caption, lines in added_lines(told):
        parts.append(Text(f"\n{caption}:"))
        parts += [ToCopy(shown(line)) for line in lines if line[:1] in ("+", "-")]
    print_parts(console, parts)


def _cost(told: StudyFigures) -> str:
    paid = [
        f"{sentences.WHERE[place.place]} it has paid for itself {sentences.payback(told, place)}"
        for place in told.places
        if told.paid_after_runs(place) is not None
    ]
    cost = f"{sentences.runs_text(told.study.runs)}, {sentences.node_hours(told.cost_node_hours)} node-hours"
    return ". ".join([cost, *paid]) + "."
