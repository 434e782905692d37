"""What a simulation says, in sentences, and its table."""

from __future__ import annotations

from forebay import quantities
from forebay.report.document import Cell, Column, Table, number_cell
from forebay.simulate.simulation import Simulation
from forebay.simulate.sweep import ENOUGH, Row


def size(value_bytes: float) -> str:
    """The size of a pool."""
    return quantities.size(value_bytes)


def name(row: Row) -> str:
    """A pool and a policy."""
    return f"{size(row.pool_bytes)} in granules of {size(row.granularity_bytes)}, {row.policy}"


def hidden(row: Row) -> float | None:
    """Share of the stage-ins that nobody waited for; None without stage-ins."""
    return row.outcome.stage_ins_hidden / row.outcome.stage_ins if row.outcome.stage_ins else None


def verdict(found: Simulation) -> str:
    """The smallest pool that is enough."""
    if found.enough is None:
        return _none(found)
    row = found.rows[found.enough]
    wait = quantities.duration(row.outcome.wait_mean_s)
    if len(found.rows) == 1:
        return f"With {name(row)}, jobs wait {wait} on average."
    return f"{name(row)} is enough: jobs wait {wait} on average."


def _none(found: Simulation) -> str:
    if found.wait_max_s is None or not any(row.outcome.jobs for row in found.rows):
        return "No pool can run any of the jobs."
    shortest_s = min(row.outcome.wait_mean_s for row in found.rows if row.outcome.jobs)
    return (
        f"No pool is enough: jobs wait {quantities.duration(shortest_s)} on average or more, "
        f"not at most {quantities.duration(found.wait_max_s)}."
    )


def paragraph(found: Simulation) -> str:
    """How the verdict was found, and what limits it."""
    parts = []
    if found.enough is not None and len(found.rows) > 1:
        parts.append(
            f"It is the smallest of {len(found.rows)} choices whose mean wait is {_short_enough(found)}, "
            "among those that reject the fewest jobs."
        )
    if found.enough is not None and (count := found.rows[found.enough].outcome.rejected):
        parts.append(f"{quantities.count(count)} jobs ask for more than there is, and are rejected.")
    return " ".join([*parts, *found.notes])


def _short_enough(found: Simulation) -> str:
    if found.wait_max_s is None:
        return f"within {quantities.percent(ENOUGH - 1)} of the shortest one"
    return f"at most {quantities.duration(found.wait_max_s)}"


def short_table(found: Simulation) -> Table:
    """The columns that fit into a terminal."""
    wide = table(found)
    names = {
        0: "pool",
        1: "granule",
        2: "policy",
        3: "mean wait",
        4: "95 % less",
        5: "hidden",
        6: "used",
        11: "rejected",
    }
    if len({row.granularity_bytes for row in found.rows}) == 1:  # the verdict has it
        del names[1]
    kept = list(names)
    columns = [Column(name, wide.columns[at].kind) for at, name in names.items()]
    return Table(wide.caption, columns, [[row[at] for at in kept] for row in wide.rows])


def table(found: Simulation) -> Table:
    """A row for each pool and policy."""
    columns = [
        Column("pool"), Column("granularity"), Column("policy", "word"), Column("mean wait"),
        Column("95 % wait less"), Column("stage-in hidden"), Column("pool in use"), Column("rounded up"),
        Column("doubled"), Column("nodes in use"), Column("node-hours staging"), Column("rejected"),
    ]  # fmt: skip
    rows = [
        [
            number_cell(row.pool_bytes, quantities.size),
            number_cell(row.granularity_bytes, quantities.size),
            Cell(row.policy),
            number_cell(row.outcome.wait_mean_s, quantities.duration),
            number_cell(row.outcome.wait_p95_s, quantities.duration),
            number_cell(hidden(row), quantities.percent),
            number_cell(row.outcome.pool_used, quantities.percent),
            number_cell(row.outcome.pool_rounded_up, quantities.percent),
            number_cell(row.outcome.doubled, quantities.count),
            number_cell(row.outcome.nodes_used, quantities.percent),
            number_cell(row.outcome.staging_node_hours, quantities.count),
            number_cell(row.outcome.rejected, quantities.count),
        ]
        for row in found.rows
    ]
    return Table("Pools and policies", columns, rows, sortable=True)
