"""The page of a simulation."""

from __future__ import annotations

from collections.abc import Iterator

from forebay import quantities
from forebay.report import page
from forebay.report.document import JobReport, Section, Tile
from forebay.report.simulation import sentences
from forebay.simulate.policies import POLICIES
from forebay.simulate.simulation import Simulation
from forebay.simulate.sweep import Row

#: What a policy does; the page explains those that were played.
MEANINGS = {
    "fifo": "fifo: jobs start in the order of submission. One that does not fit holds up all others.",
    "backfill": "backfill: later jobs start if they do not delay the nodes of the first one. "
    "They may take granules that it waits for.",
    "reserve": "reserve: as backfill, and the granules of the first job are reserved, too.",
    "stage-ahead": "stage-ahead: jobs get their granules and stage in while they wait for nodes, and "
    "stage out after they have returned them.",
}


def html(found: Simulation) -> str:
    """The page."""
    report = JobReport(
        label="",
        name=f"{found.site} · {quantities.count(found.jobs)} jobs on {quantities.count(found.nodes)} nodes",
        verdicts=[sentences.verdict(found)],
        paragraph=sentences.paragraph(found),
        tiles=list(_tiles(found)),
        lead=[],
        lead_narrow=[],
        findings=[],
        sections=list(_sections(found)),
        programs=[],
    )
    return page.html(f"{found.site}, simulated", [report], None, advice=False, kind="simulation")


def _tiles(found: Simulation) -> Iterator[Tile]:
    if found.enough is None:
        return
    row = found.rows[found.enough]
    interval = ""
    if row.wait_mean_low_s is not None and row.wait_mean_high_s is not None:
        ends = [quantities.duration(max(0.0, end)) for end in (row.wait_mean_low_s, row.wait_mean_high_s)]
        interval = f"{ends[0]} to {ends[1]} (95 %)"
    yield Tile("Mean wait", quantities.duration(row.outcome.wait_mean_s), interval)
    yield Tile("Wait of 95 % at most", quantities.duration(row.outcome.wait_p95_s))
    yield Tile("Stage-in hidden", quantities.percent(sentences.hidden(row)), "of the stage-ins")
    yield Tile("Pool in use", quantities.percent(row.outcome.pool_used), "on average")
    yield Tile("Nodes in use", quantities.percent(row.outcome.nodes_used), "on average")
    yield Tile("Rejected", quantities.count(row.outcome.rejected), "jobs")


def _sections(found: Simulation) -> Iterator[Section]:
    from forebay.report.charts.simulation import NARROW_PX, over_time, waits

    series = _series(found.rows)
    of_sizes = len({row.pool_bytes for row in found.rows}) > 1
    title = "Mean wait by the size of the pool"
    about = "A line for each policy and granularity. The table below has the values."
    played = [MEANINGS[policy] for policy in POLICIES if any(row.policy == policy for row in found.rows)]
    yield Section(
        "pools",
        "Pools and policies",
        "A wait is from the submission of a job to the begin of its computation.",
        charts=[waits(series, title, about)] if of_sizes else [],
        charts_narrow=[waits(series, title, about, NARROW_PX)] if of_sizes else [],
        tables=[sentences.table(found)],
        notes=played,
    )
    if found.course is not None and found.enough is not None and found.course.pool_used:
        course, row = found.course, found.rows[found.enough]
        shares = [("pool", course.pool_used), ("nodes", course.nodes_used)]
        seen = (
            f"On average {quantities.percent(row.outcome.pool_used)} of the pool and "
            f"{quantities.percent(row.outcome.nodes_used)} of the nodes are in use, and "
            f"{row.outcome.waiting_jobs_mean:.3g} jobs wait."
        )
        drawn = course.part_s, shares, course.waiting_jobs, f"In use: {sentences.name(row)}", seen
        yield Section(
            "course",
            "Over time",
            seen,
            charts=[over_time(*drawn)],
            charts_narrow=[over_time(*drawn, NARROW_PX)],
        )


def _series(rows: list[Row]) -> list[tuple[str, list[tuple[float, float, float | None, float | None]]]]:
    several = len({row.granularity_bytes for row in rows}) > 1
    found: dict[str, list[tuple[float, float, float | None, float | None]]] = {}
    for row in sorted(rows, key=lambda row: row.pool_bytes):
        name = f"{row.policy}, {sentences.size(row.granularity_bytes)}" if several else row.policy
        point = row.pool_bytes, row.outcome.wait_mean_s, row.wait_mean_low_s, row.wait_mean_high_s
        found.setdefault(name, []).append(point)
    return list(found.items())
