"""The pictures of a study: the course of each search, and what each parameter did."""

from __future__ import annotations

from statistics import median

from forebay.report.charts.search import NARROW_PX, WIDTH_PX, Interval, Mark, search_path, strip
from forebay.report.charts.svg_figure import Chart
from forebay.report.document import escape_hidden
from forebay.report.tuning.figures import PlaceFigures, StudyFigures
from forebay.report.tuning.sentences import pairing_text, runs_text
from forebay.tune.model import Parameter, Run

#: Parameters that are drawn: those whose values differ most. The table of runs has all.
STRIPS_MAX = 12
KINDS = {"probe": "guess", "guess": "guess", "final": "final"}


def search(study: StudyFigures, place: PlaceFigures) -> tuple[list[Chart], list[Chart]]:
    """The picture of a search, and the same for a narrow window. None without two times to compare."""
    if sum(ratio is not None for ratio in place.drawn_ratios) < 2:
        return [], []
    marks = [_mark(*one) for one in zip(place.runs, place.drawn_ratios, place.best_values(), strict=True)]
    proof = place.verdict.pairing if place.verdict else None
    interval = Interval(1 / proof.high, 1 / proof.ratio, 1 / proof.low) if proof and proof.interval else None
    failed = sum(mark.ratio is None for mark in marks)
    paired = f" The final round: {pairing_text(proof)}." if proof else ""
    about = (
        f"{runs_text(place.runs)}, {failed} failed; the {study.compared} of each over that of the default at "
        f"the time, on a logarithmic axis.{paired} The table of all runs has each figure."
    )
    title = f"The {study.compared} of each run over that of the default at the time"
    broad, narrow = (
        search_path(marks, interval, study.compared, title, about, width) for width in (WIDTH_PX, NARROW_PX)
    )
    return [broad], [narrow]


def _mark(run: Run, ratio: float | None, best: float | None) -> Mark:
    kind = KINDS.get(run.phase, "search") if run.configuration else "default"
    failed = run.status == "failed" or ratio is None
    return Mark(
        run.number, kind, None if failed else ratio, run.status in ("contaminated", "ineffective"), best
    )


def values(study: StudyFigures, place: PlaceFigures) -> tuple[list[Chart], int]:
    """A picture for each parameter of which two values were run; and how many more there would be."""
    found = [(one, place.by_value(one)) for one in (place.plan.parameters if place.plan else ())]
    compared = [(one, rows) for one, rows in found if len(rows) > 1]
    compared.sort(key=lambda pair: _reach([median(ratios) for _, ratios in pair[1]]), reverse=True)
    limits = [ratio for _, rows in compared for _, ratios in rows for ratio in ratios]
    charts = [_strip(one, rows, limits, study.compared) for one, rows in compared[:STRIPS_MAX]]
    return charts, max(0, len(compared) - STRIPS_MAX)


def _reach(medians: list[float]) -> float:
    return max(medians) / min(medians)


def _strip(
    parameter: Parameter, rows: list[tuple[str | None, list[float]]], limits: list[float], what: str
) -> Chart:
    unset = f"not set ({parameter.default})" if parameter.default else "not set"
    named = [(escape_hidden(unset if value is None else value), ratios) for value, ratios in rows]
    about = "; ".join(
        f"{name}: median {median(ratios):.2f} of the default's time in {len(ratios)} runs"
        for name, ratios in named
    )
    return strip(named, limits, what, escape_hidden(parameter.name), about)
