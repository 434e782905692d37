"""Tables of plans, for terminal and page."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.plan.answer import Curve, Plan, Sized, Study
from forebay.plan.checkpoint import Interval
from forebay.plan.reasons import server_word
from forebay.plan.units import node_hours_text, stripe_text
from forebay.quantities import duration, percent, ratio
from forebay.report.document import Cell, Column, Table
from forebay.report.planning import sentences

if TYPE_CHECKING:
    from forebay.plan.calibration import Judged

#: Closer figures are equal: runs vary by 2 to 3 % (S0-134).
PAIR_LOG_MIN = math.log(1.05)
_KINDS = {"value": "", "below": "less than ", "above": "more than ", "ordering": ""}


def storages(plan: Plan) -> Table:
    """One row for each storage that can serve the job."""
    columns = [
        Column("storage", "text"), Column("I/O time (band)"), Column("without hints"), Column("gain"),
        Column("of peak"), Column("node-hours"),
    ]  # fmt: skip
    rows = [
        [
            Cell(one.storage),
            Cell(sentences.with_band(one.recommended), one.recommended.io_s),
            Cell(duration(one.default.io_s), one.default.io_s),
            Cell(ratio(one.speed_up), one.speed_up),
            Cell(percent(one.recommended.efficiency), one.recommended.efficiency),
            _price(one.recommended),
        ]
        for one in plan.storages
        if one.recommended
    ]
    return Table("Predicted I/O time with the recommended settings", columns, rows)


def curve(one: Curve) -> Table:
    """One row for each number of servers."""
    columns = [
        Column(server_word(one.kind)), Column("I/O time (band)"), Column("of peak"), Column("aggregators"),
        Column("stripe unit"), Column("without hints"), Column("node-hours"),
    ]  # fmt: skip
    rows = [
        [Cell(str(point.servers), point.servers), *_best(point.best, point.default)] for point in one.points
    ]
    return Table(f"{one.storage}: all points", columns, rows, sortable=True)


def _best(best: Sized, plain: Sized) -> list[Cell]:
    return [
        Cell(sentences.with_band(best), best.io_s),
        Cell(percent(best.efficiency), best.efficiency),
        Cell(sentences.counts(best.aggregators)),
        Cell(sentences.sizes(best.stripe_bytes), best.stripe_bytes[0]),
        Cell(duration(plain.io_s), plain.io_s),
        _price(best),
    ]


def _price(one: Sized) -> Cell:
    hours = one.node_hours + one.storage_node_hours
    return Cell(node_hours_text(hours), hours)


def study(result: Study) -> Table:
    """One row for each number of servers."""
    columns = [
        Column("servers"), Column("runs"), Column("without hints"), Column("tuned"), Column("aggregators"),
        Column("stripe unit"),
    ]  # fmt: skip
    rows = [
        [
            Cell(str(one.servers), one.servers),
            Cell(str(one.runs), one.runs),
            Cell(duration(one.default_s), one.default_s),
            Cell(duration(one.best_s), one.best_s),
            Cell(str(one.aggregators), one.aggregators),
            Cell(stripe_text(one.stripe_bytes), one.stripe_bytes),
        ]
        for one in result.points
    ]
    return Table(f"{result.machine}, {result.storage}: the tuner's search against the model", columns, rows)


def checkpoints(intervals: Sequence[Interval]) -> Table:
    """One row for each level."""
    columns = [
        Column("storage", "text"), Column("write"), Column("Young"), Column("every"), Column("drain"),
        Column("lost"), Column("lost node-hours a day"), Column("storage node-hours a day"),
    ]  # fmt: skip
    rows = [
        [
            Cell(one.storage),
            Cell(duration(one.write_s), one.write_s),
            Cell(duration(one.young_s), one.young_s),
            Cell(duration(one.interval_s), one.interval_s),
            Cell(duration(one.drain_s) if one.drain_s else "–", one.drain_s),
            Cell(percent(one.waste), one.waste),
            Cell(node_hours_text(one.lost_node_hours_per_day), one.lost_node_hours_per_day),
            Cell(node_hours_text(one.storage_node_hours_per_day), one.storage_node_hours_per_day),
        ]
        for one in intervals
    ]
    return Table("Checkpoints by level", columns, rows)


def calibration(judged: Sequence[Judged]) -> Table:
    """One row for each published figure."""
    columns = [
        Column("row", "word"), Column("experiment", "text"), Column("what", "text"), Column("published"),
        Column("predicted"), Column("ratio"), Column("fitted"),
    ]  # fmt: skip
    rows = [
        [
            Cell(one.row.id),
            Cell(one.row.group),
            Cell(one.row.about),
            Cell(_published(one)),
            Cell(_predicted(one, one.left_out)),
            Cell(f"{one.ratio:.2f}" if one.row.kind == "value" else ("holds" if one.holds else "FAILS")),
            Cell(f"{one.fitted / one.row.published:.2f}" if one.row.kind == "value" else ""),
        ]
        for one in judged
    ]
    return Table("Published and predicted, without the row's own experiment", columns, rows)


def _published(one: Judged) -> str:
    if one.row.kind == "ordering":
        return "ordering"
    return f"{_KINDS[one.row.kind]}{one.row.published:.4g} {one.row.unit}".strip()


def _predicted(one: Judged, value: float) -> str:
    return "" if one.row.kind == "ordering" else f"{value:.4g}"


def summary(judged: Sequence[Judged]) -> list[str]:
    """How good the model is, without each row's own experiment and with all rows."""
    values = [one for one in judged if one.row.kind == "value"]
    others = [one for one in judged if one.row.kind != "value"]
    left_out = [one.ratio for one in values]
    fit = [one.fitted / one.row.published for one in values]
    return [
        f"left out: {_errors(left_out)}",
        f"fitted to all rows: {_errors(fit)}",
        f"bounds and orderings that hold: {sum(bool(one.holds) for one in others)} of {len(others)}",
        _pairs(values),
    ]


def _pairs(values: Sequence[Judged]) -> str:
    """Of two figures of one kind from one experiment, which is larger."""
    alike = [
        (one, other)
        for one, other in itertools.combinations(values, 2)
        if (one.row.group, one.metric, one.row.unit) == (other.row.group, other.metric, other.row.unit)
        and abs(math.log(one.row.published / other.row.published)) > PAIR_LOG_MIN
    ]
    right = sum(
        (one.row.published < other.row.published) == (one.left_out < other.left_out) for one, other in alike
    )
    return f"pairs of figures in the published order: {right} of {len(alike)}"


def _errors(ratios: Sequence[float]) -> str:
    logarithms = [abs(math.log(one)) for one in ratios]
    within = sum(one <= math.log(1.5) for one in logarithms) / len(logarithms)
    median = math.exp(statistics.median(logarithms)) - 1
    share = f"{100 * within:.0f} % of {len(ratios)} figures within a factor of 1.5"
    return f"median error {100 * median:.0f} %, {share}"
