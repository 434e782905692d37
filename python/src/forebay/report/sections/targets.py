"""How long files on each storage target took."""

from __future__ import annotations

from statistics import median

from forebay import quantities
from forebay.profiles.targets import TargetUse, by_target, main_direction
from forebay.report.document import Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

COLUMNS = [*map(Column, ("target", "files", "bytes", "mean time of a file", "slowest file", "throughput"))]


def section(context: SectionContext) -> Section | None:
    """The program's section; none where no file tells of a single target."""
    direction = main_direction(context.program)
    found = sorted(by_target(context.program, direction).items(), key=lambda item: -item[1].mean_s)
    if not found:
        return None
    rows = [
        [
            number_cell(target),
            number_cell(one.files),
            number_cell(one.bytes, quantities.size),
            number_cell(one.mean_s, quantities.duration),
            number_cell(one.slowest_s, quantities.duration),
            number_cell(1 / one.s_per_byte, quantities.rate),
        ]
        for target, one in found
    ]
    caption = f"{'Writes' if direction == 'write' else 'Reads'} of the files on each storage target"
    return Section(
        "targets",
        "Storage targets",
        _summary(found),
        tables=[Table(caption, COLUMNS, rows, sortable=True)],
        notes=["Seconds are of the slowest rank of each file. A file on several targets counts for each."],
    )


def _summary(found: list[tuple[int, TargetUse]]) -> str:
    target, slowest = found[0]
    if len(found) == 1:
        return f"All such files are on storage target {target}."
    usual_s = median(one.mean_s for _, one in found)
    return (
        f"Files on target {target} took longest: {quantities.duration(slowest.mean_s)} on average, against "
        f"{quantities.duration(usual_s)} on the median one of {quantities.count(len(found))} targets."
    )
