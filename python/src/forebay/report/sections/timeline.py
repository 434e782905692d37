"""Each rank's calls over time, where the program has a trace."""

from __future__ import annotations

from collections import Counter

from forebay import quantities
from forebay.profiles.trace import ACTIVITIES, RankCalls, Trace
from forebay.report.document import Cell, Section, Table, columns, number_cell
from forebay.report.sections.context import SectionContext
from forebay.report.sections.time_spent import NAMES

#: So many ranks a note names.
NAMED_MAX = 5


def section(context: SectionContext) -> Section | None:
    """The program's section; none without a trace."""
    found = context.trace
    if found is None:
        return None
    if isinstance(found, str):
        return Section("timeline", "Timeline of calls", f"The trace cannot be read: {found}.")
    if not any(one.spans for one in found.read):
        return Section("timeline", "Timeline of calls", "The trace has no calls.")
    return _charted(context, found)


def _charted(context: SectionContext, found: Trace) -> Section:
    from forebay.report.charts.timeline import timeline

    spent = [_seconds(one) for one in found.read]
    seen = _summary(found, spent)
    about = f"{seen} The table below has the sums."
    longest_s = context.limit(lambda peer: peer.trace.length_s if isinstance(peer.trace, Trace) else None)
    chart, bars, gap_s = timeline(found.read, longest_s, NAMES, "Calls by rank and time", about)
    return Section(
        "timeline",
        "Timeline of calls",
        seen,
        charts=[chart],
        tables=[_table(found, spent)],
        notes=_notes(found, bars, gap_s),
    )


def _seconds(one: RankCalls) -> Counter[str]:
    spent: Counter[str] = Counter()
    for span in one.spans:
        spent[span.activity] += span.end_s - span.begin_s
    return spent


def _summary(found: Trace, spent: list[Counter[str]]) -> str:
    calls = sum(one.calls for one in found.read)
    busiest = max(range(len(spent)), key=lambda at: spent[at].total())
    return (
        f"{_named(len(found.read), 'rank')} made {_named(calls, 'call')} in "
        f"{quantities.duration(found.length_s)}; rank {found.read[busiest].rank} spent most time in them: "
        f"{quantities.duration(spent[busiest].total())}."
    )


def _named(number: int, noun: str) -> str:
    return f"{quantities.count(number)} {noun}{'' if number == 1 else 's'}"


def _table(found: Trace, spent: list[Counter[str]]) -> Table:
    used = [activity for activity in ACTIVITIES if any(one[activity] for one in spent)]
    rows = [
        [
            Cell(f"rank {one.rank}", one.rank),
            number_cell(one.calls),
            *(number_cell(of_rank[activity], quantities.duration) for activity in used),
        ]
        for one, of_rank in zip(found.read, spent, strict=True)
    ]
    names = columns("rank", "calls", *(NAMES[activity] for activity in used))
    return Table("Seconds in calls by rank", names, rows, sortable=True, folded=True)


def _notes(found: Trace, bars: int, gap_s: float) -> list[str]:
    spans = sum(len(one.spans) for one in found.read)
    notes = ["Times count from the first begin of a trace, at the end of MPI_Init."]
    if bars < spans:
        notes.append(
            f"{_named(bars, 'bar')} stand for {quantities.count(spans)} times in calls: what is closer than "
            f"{quantities.duration(gap_s)} is one bar, in the colour of what took most of it."
        )
    if len(found.read) < found.ranks:
        notes.append(f"{len(found.read)} of {_named(found.ranks, 'rank')} are read, at equal distances.")
    cut = [one.cut_s for one in found.read if one.cut_s is not None]
    if cut:
        notes.append(
            f"The traces of {_named(len(cut), 'rank')} are too large to be read whole: calls after "
            f"{quantities.duration(min(cut))} are not all shown."
        )
    damaged = [str(one.rank) for one in found.read if one.damaged]
    if damaged:
        which = ", ".join(damaged[:NAMED_MAX]) + (", ..." if len(damaged) > NAMED_MAX else "")
        notes.append(
            f"The traces of {_named(len(damaged), 'rank')} have no end ({which}): the program was killed or "
            "still runs, or they are damaged."
        )
    return notes
