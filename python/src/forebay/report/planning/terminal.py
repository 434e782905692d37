"""Plans, sweeps, checkpoints and the calibration on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from forebay.plan.answer import CheckpointPlan, Curve, Plan, StoragePlan, Study, Sweep
from forebay.plan.reasons import server_word
from forebay.plan.units import node_hours_text, stripe_text
from forebay.quantities import counted, duration, percent
from forebay.report.document import escape_hidden
from forebay.report.planning import sentences, tables
from forebay.report.terminal import whole_grid

if TYPE_CHECKING:
    from forebay.plan.calibration import Judged

#: Letters of a curve's bar at most.
BAR_CELLS = 40
#: Columns where standard output is no terminal: no column is cut.
FILE_COLUMNS = 240


def console() -> Console:
    """For standard output; a file or a pipe gets whole lines."""
    plain = Console(highlight=False, markup=False, emoji=False)
    return (
        plain
        if plain.is_terminal
        else Console(highlight=False, markup=False, emoji=False, width=FILE_COLUMNS)
    )


def print_plan(console: Console, plan: Plan) -> None:
    """A table of the storages, then what to do for the fastest, and why."""
    _head(console, plan)
    if any(one.recommended for one in plan.storages):
        console.print(whole_grid(tables.storages(plan)))
    for one in plan.storages:
        _print_storage(console, one)
    _notes(console, plan.notes)


def _print_storage(console: Console, one: StoragePlan) -> None:
    console.print()
    if one.unsuitable:
        _line(console, f"{one.storage}: not for this job: {one.unsuitable}")
        return
    _line(console, f"{one.storage}: {sentences.settings(one.kind, one.recommended)}", "bold")
    for text in [*sentences.details(one), *one.reasons]:
        _line(console, f"  {text}")
    if one.outside:
        _line(console, f"  outside of the published runs, so the band is wider: {'; '.join(one.outside)}")
    for change in one.changes:
        _line(console, f"  {sentences.change(change)}:")
        _line(console, f"    {change.new}", "bold")
    if one.script is None:
        for text in one.lines:
            _line(console, f"    {text}", "bold")


def print_sweep(console: Console, sweep: Sweep) -> None:
    """A bar for each number of servers."""
    _head(console, sweep)
    times = [point.best.io_s for curve in sweep.curves for point in curve.points]
    longest = max(times, default=1.0)
    for curve in sweep.curves:
        console.print()
        if curve.unsuitable:
            _line(console, f"{curve.storage}: not for this job: {curve.unsuitable}")
            continue
        _print_curve(console, curve, longest)
    _notes(console, sweep.notes)


def _print_curve(console: Console, curve: Curve, longest: float) -> None:
    _line(console, f"{curve.storage}: I/O time and efficiency against {server_word(curve.kind)}", "bold")
    for point in curve.points:
        hours = node_hours_text(point.best.node_hours + point.best.storage_node_hours)
        bar = "#" * max(1, round(BAR_CELLS * _logarithmic(point.best.io_s, longest)))
        mark = " <- recommended" if point.servers == curve.recommended_servers else ""
        text = (
            f"{point.servers:6d}  {duration(point.best.io_s):>9s}  {percent(point.best.efficiency):>6s}  "
            f"without hints {duration(point.default.io_s):>9s}  "
            f"{hours:>7s} node-hours  {bar}{mark}"
        )
        _line(console, text)
    if curve.outside:
        _line(console, f"  outside of the published runs, so bands are wider: {'; '.join(curve.outside)}")


def _logarithmic(value: float, longest: float) -> float:
    """Four decades below the longest time are nothing."""
    return max(0.0, 1 + math.log10(value / longest) / 4)


def print_checkpoints(console: Console, plan: CheckpointPlan) -> None:
    """A row for each level, the fewest node-hours first."""
    _line(console, sentences.checkpoint_headline(plan), "bold")
    console.print(whole_grid(tables.checkpoints(plan.levels)))
    for text in sentences.checkpoint_details(plan):
        _line(console, text)


def print_study(console: Console, study: Study) -> None:
    """What the tuner finds for each number of servers, and known settings next to it."""
    console.print(whole_grid(tables.study(study)))
    best = study.best
    chosen = _settings(best.servers, best.aggregators, best.stripe_bytes)
    _line(console, f"{study.storage}: {chosen}: {duration(best.best_s)}", "bold")
    for one in study.known:
        shown_settings = _settings(one.servers, one.aggregators, one.stripe_bytes)
        times = f"{duration(one.io_s)}, {one.io_s / best.best_s:.2f} of it"
        _line(console, f"known: {shown_settings}: {times}")


def _settings(servers: int, aggregators: int, stripe_bytes: int) -> str:
    of_file = f"{counted(servers, 'server')}, {counted(aggregators, 'aggregator')}"
    return f"{of_file}, stripe unit {stripe_text(stripe_bytes)}"


def print_calibration(console: Console, judged: Sequence[Judged]) -> None:
    """Each published figure with the prediction of a model that was fitted without its experiment."""
    console.print(whole_grid(tables.calibration(judged)))
    for text in tables.summary(judged):
        _line(console, text, "bold")


def _head(console: Console, plan: Plan | Sweep) -> None:
    _line(console, sentences.headline(plan), "bold")
    for one in plan.patterns:
        _line(console, f"  {sentences.pattern(one)}")


def _notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        _line(console, f"note: {note}", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(escape_hidden(text), style=style), soft_wrap=True)
