"""Where the time went, on the average of the ranks."""

from __future__ import annotations

import msgspec

from forebay import quantities
from forebay.profiles import metrics, time_parts
from forebay.profiles.model import LayerName, Profile, Program
from forebay.report.charts.shares import WIDTH_PX, Part, bar_of_shares
from forebay.report.charts.svg_figure import Chart
from forebay.report.document import Cell, Section, Table, columns, number_cell
from forebay.report.sections.context import SectionContext

NAMES = {
    "write": "writing",
    "read": "reading",
    "rmw": "read-modify-write",
    "waiting": "exchange, waiting",
    "metadata": "metadata, locks",
    "sync": "sync",
    "still": "no I/O here",
}
#: A layer with a smaller share of the run time than this is in the table only.
CHARTED_SHARE_MIN = 0.001


def section(context: SectionContext) -> Section:
    """The program's section."""
    split = split_of_layers(context)
    if not split:
        return Section(
            "time", "Where the time went", "The source tells no run time, so there are no shares of it."
        )
    used = [activity for activity in NAMES if any(parts[activity] for _, parts in split)]
    rows = [
        [Cell(layer), *(number_cell(parts[activity], quantities.duration) for activity in used)]
        for layer, parts in split
    ]
    caption = f"Seconds of a rank, on average, of {quantities.duration(context.program.wall_s)} run time"
    return Section(
        "time",
        "Where the time went",
        _summary(_main(split, context.program), context.program),
        tables=[Table(caption, columns("layer", *(NAMES[activity] for activity in used)), rows)],
        notes=["The time of POSIX calls that the MPI makes for a file is also in the bar of MPI-IO."]
        if len(split) > 1 and split[0][0] == "MPI-IO"
        else [],
    )


def _main(
    split: list[tuple[LayerName, dict[str, float]]], program: Program
) -> tuple[LayerName, dict[str, float]]:
    """Of the layer through which the application moved most bytes."""
    known = dict(split)
    layer = next(layer for layer in metrics.layers_by_bytes(program) if layer in known)
    return layer, known[layer]


def split_of_layers(context: SectionContext) -> list[tuple[LayerName, dict[str, float]]]:
    """For each layer the seconds of a rank, on average, by activity; together the run time."""
    return [
        (time.layer, by_activity(time.parts, time.wall_s)) for time in time_parts.time_split(context.program)
    ]


def slowest_rank(profile: Profile, program: Program) -> dict[str, float] | None:
    """What the slowest rank spent its time in, as shares of the job's run time, by activity."""
    parts, share = time_parts.slowest_rank_parts(program), metrics.io_share(profile)
    if parts is None or share is None:
        return None
    return {activity: seconds / share.run_s for activity, seconds in by_activity(parts, share.run_s).items()}


def of_job(profile: Profile) -> dict[str, float]:
    """The same of all programs together; empty if it is not known."""
    found = [shares for program in profile.programs if (shares := slowest_rank(profile, program))]
    return (
        {activity: sum(shares[activity] for shares in found) for activity in NAMES if activity != "still"}
        if found
        else {}
    )


def by_activity(parts: time_parts.Parts, run_s: float) -> dict[str, float]:
    """Seconds by activity, and those of the run that are left."""
    return msgspec.structs.asdict(parts) | {"still": max(0.0, run_s - parts.sum())}


def chart(split: list[tuple[str, dict[str, float]]], width_px: int = WIDTH_PX) -> Chart:
    """The bars: a row for each name with its parts as shares of the run time."""
    rows = [
        (
            name,
            [
                Part(activity, NAMES[activity], share, f"{100 * share:.0f} %")
                for activity, share in parts.items()
            ],
        )
        for name, parts in split
        if parts["still"] < 1 - CHARTED_SHARE_MIN or len(split) == 1
    ] or [(name, [Part("still", NAMES["still"], 1.0, "100 %")]) for name, _ in split[:1]]
    return bar_of_shares(rows, "Where the time went: share of the run time", _about(rows), width_px)


def chart_in_seconds(split: list[tuple[str, dict[str, float]]], width_px: int = WIDTH_PX) -> Chart:
    """The same in seconds, all rows on one scale: that of the longest."""
    limit_s = max(sum(parts.values()) for _, parts in split)
    rows = [
        (
            name,
            [
                Part(activity, NAMES[activity], spent_s / limit_s, quantities.duration(spent_s))
                for activity, spent_s in parts.items()
            ],
        )
        for name, parts in split
    ]
    ticks = ["0", *(quantities.duration(limit_s * quarter / 4) for quarter in range(1, 5))]
    title = "Where the time of the slowest rank went, in seconds"
    return bar_of_shares(rows, title, _about(rows), width_px, ticks)


def _about(rows: list[tuple[str, list[Part]]]) -> str:
    number_cell = (
        (name, [f"{part.name} {part.amount}" for part in parts if part.share]) for name, parts in rows
    )
    return "; ".join(f"{name}: {', '.join(parts)}" for name, parts in number_cell)


def _summary(first: tuple[LayerName, dict[str, float]], program: Program) -> str:
    layer, parts = first
    io_s = program.wall_s - parts["still"]
    largest = max((activity for activity in parts if activity != "still"), key=parts.__getitem__)
    if not parts[largest]:
        return f"A rank spent next to nothing of its {quantities.duration(program.wall_s)} in I/O."
    what, spent_s = NAMES[largest].replace(", ", " and "), parts[largest]
    if largest == "waiting" and parts["rmw"] > max(parts["write"], parts["read"]):
        what, spent_s = "reading in order to write and waiting for it", parts["rmw"] + parts["waiting"]
    return (
        f"On average a rank spent {quantities.percent(io_s / program.wall_s)} of "
        f"{quantities.duration(program.wall_s)} in {layer}, most of it in "
        f"{what} ({quantities.duration(spent_s)})."
    )
