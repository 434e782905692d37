"""The page of a sweep, and that of the calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.plan.answer import CheckpointPlan, Curve, Sweep
from forebay.plan.reasons import server_count, server_word
from forebay.plan.units import node_hours_text
from forebay.quantities import counted, duration, percent
from forebay.report import page
from forebay.report.charts.curves import Line, Scatter, curves, scatter
from forebay.report.charts.svg_figure import Chart
from forebay.report.document import JobReport, Section, Tile
from forebay.report.planning import sentences, tables

if TYPE_CHECKING:
    from forebay.plan.calibration import Judged

KIND = "plan"


def sweep_page(sweep: Sweep) -> str:
    """One HTML page with two charts and a table for each storage."""
    title = sentences.headline(sweep)
    report = JobReport(
        label="",
        name=title,
        verdicts=[_verdict(sweep)],
        paragraph="; ".join(sentences.pattern(one) for one in sweep.patterns) + ".",
        tiles=[_tile(curve) for curve in sweep.curves if curve.points],
        lead=[],
        lead_narrow=[],
        findings=[],
        sections=[_section(curve) for curve in sweep.curves],
        programs=[],
    )
    return page.html(title, [report], None, advice=False, kind=KIND)


def _verdict(sweep: Sweep) -> str:
    best = [(_recommended(curve), curve) for curve in sweep.curves if curve.points]
    if not best:
        return "No storage of this machine can serve the job."
    point, curve = min(best, key=lambda pair: pair[0].best.io_s)
    return (
        f"{curve.storage} is the fastest: {sentences.with_band(point.best)} with "
        f"{sentences.settings(curve.kind, point.best)}."
    )


def _recommended(curve: Curve):
    return next(point for point in curve.points if point.servers == curve.recommended_servers)


def _tile(curve: Curve) -> Tile:
    best = _recommended(curve).best
    return Tile(curve.storage, duration(best.io_s), f"on {server_count(curve.kind, best.servers)}")


def _section(curve: Curve) -> Section:
    if curve.unsuitable:
        return Section(key=curve.storage, name=curve.storage, title=f"Not for this job: {curve.unsuitable}.")
    best = _recommended(curve).best
    verb = "costs" if best.servers == 1 else "cost"
    return Section(
        key=curve.storage,
        name=curve.storage,
        title=f"{server_count(curve.kind, best.servers)} {verb} the fewest node-hours: "
        f"{duration(best.io_s)}, {percent(best.efficiency)} of the peak.",
        charts=_charts(curve),
        tables=[tables.curve(curve)],
        notes=[f"Outside of the calibration: {note}" for note in curve.outside],
    )


def _charts(curve: Curve) -> list[Chart]:
    servers = [point.servers for point in curve.points]
    best = [point.best for point in curve.points]
    plain = [point.default for point in curve.points]
    word = server_word(curve.kind)
    if len(servers) < 2:
        return []
    time = curves(
        servers,
        [
            Line(
                "best settings",
                "write",
                [one.io_s for one in best],
                [(one.low_s, one.high_s) for one in best],
            ),
            Line("without hints", "muted", [one.io_s for one in plain], None),
        ],
        x=word,
        y="I/O time, s",
        title=f"{curve.storage}: I/O time against {word}",
        about="; ".join(f"{point.servers}: {duration(point.best.io_s)}" for point in curve.points),
    )
    efficiency = curves(
        servers,
        [
            Line("best settings", "read", [100 * one.efficiency for one in best], None),
            Line("without hints", "muted", [100 * one.efficiency for one in plain], None),
        ],
        x=word,
        y="share of the servers' peak, %",
        title=f"{curve.storage}: efficiency against {word}",
        is_share=True,
        about="; ".join(f"{point.servers}: {percent(point.best.efficiency)}" for point in curve.points),
    )
    return [time, efficiency]


def checkpoint_page(plan: CheckpointPlan) -> str:
    """One HTML page with a row for each storage."""
    best = plan.levels[0]
    report = JobReport(
        label="",
        name=f"{plan.machine}: checkpoints of {counted(plan.nodes, 'node')}",
        verdicts=[f"{sentences.checkpoint_headline(plan)}."],
        paragraph=f"A failure every {duration(plan.failure_s)} on average.",
        tiles=[
            Tile("Every", duration(best.interval_s), f"to {best.storage}"),
            Tile(
                "Lost",
                percent(best.waste),
                f"{node_hours_text(best.lost_node_hours_per_day)} node-hours a day",
            ),
            Tile("Storage", node_hours_text(best.storage_node_hours_per_day), "node-hours a day"),
        ],
        lead=[],
        lead_narrow=[],
        findings=[],
        sections=[
            Section(
                key="storages",
                name="Storages",
                title="The first row costs the fewest node-hours, lost time and storage together.",
                tables=[tables.checkpoints(plan.levels)],
                notes=[f"{text}." for text in sentences.checkpoint_details(plan)],
            )
        ],
        programs=[],
    )
    return page.html(report.name, [report], None, advice=False, kind=KIND)


def calibration_page(judged: Sequence[Judged]) -> str:
    """One HTML page with a picture for each kind of storage and machine, and all rows."""
    title = "Published and predicted figures"
    report = JobReport(
        label="",
        name=title,
        verdicts=[tables.summary(judged)[0].capitalize() + "."],
        paragraph="Each figure is predicted by a model that was fitted without its own experiment.",
        tiles=[],
        lead=[],
        lead_narrow=[],
        findings=[],
        sections=[
            Section(
                key="figures",
                name="Figures",
                title="A point on the line is predicted as it was published.",
                charts=calibration_charts(judged),
                tables=[tables.calibration(judged)],
                notes=[
                    "Each figure has its own unit, which the table shows.",
                    "Dashed lines are a factor of 1.5 away.",
                ],
            )
        ],
        programs=[],
    )
    return page.html(title, [report], None, advice=False, kind=KIND)


def calibration_charts(judged: Sequence[Judged]) -> list[Chart]:
    """One picture for each machine."""
    values = [one for one in judged if one.row.kind == "value"]
    machines = dict.fromkeys(one.machine for one in values)
    return [_of_machine(name, [one for one in values if one.machine == name]) for name in machines]


def _of_machine(name: str, values: Sequence[Judged]) -> Chart:
    groups = dict.fromkeys(one.row.group for one in values)
    series = [
        Scatter(group, [(one.row.published, one.left_out) for one in values if one.row.group == group])
        for group in groups
    ]
    about = "; ".join(f"{one.row.id} {one.row.published:.3g} {one.left_out:.3g}" for one in values)
    return scatter(
        series,
        x="published, each figure in its own unit",
        y="predicted, in the same unit",
        title=f"{name}: predicted against published",
        about=about,
    )
