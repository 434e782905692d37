"""The summary of a study in the terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text

from forebay.report.document import escape_hidden
from forebay.report.terminal import UnbrokenLine, grid, print_parts
from forebay.report.tuning import sentences, tables
from forebay.report.tuning.figures import StudyFigures, figures
from forebay.report.tuning.records import added_lines
from forebay.tune.study import Study


def print_summary(console: Console, study: Study) -> None:
    """Verdicts, the table of default and tuned, the lines added, the cost."""
    study_figures = figures(study)
    parts: list[RenderableType] = [
        Text(escape_hidden(one), style="bold") for one in sentences.verdicts(study_figures)
    ]
    table = tables.outcome(study_figures)
    if table.rows:
        parts += ["", Text(escape_hidden(table.caption), style="bold"), grid(table)]
    if study.runs:
        parts.append(Text(f"\n{_cost(study_figures)}"))
    parts.append(Text(escape_hidden(sentences.ending(study_figures))))
    for caption, lines in added_lines(study_figures):
        parts.append(Text(f"\n{caption}:"))
        parts += [UnbrokenLine(escape_hidden(line)) for line in lines if line[:1] in ("+", "-")]
    print_parts(console, parts)


def _cost(study: StudyFigures) -> str:
    paid = [
        f"{sentences.WHERE[place.place]} it has paid for itself {sentences.payback(study, place)}"
        for place in study.places
        if study.paid_after_runs(place) is not None
    ]
    cost = (
        f"{sentences.runs_text(study.study.runs)}, {sentences.node_hours(study.cost_node_hours)} node-hours"
    )
    return ". ".join([cost, *paid]) + "."
