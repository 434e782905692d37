"""Rules about collective buffering, data sieving and hints of MPI-IO files."""

from __future__ import annotations

from collections.abc import Iterator

from forebay.advice import thresholds
from forebay.advice.counters import WAYS, Way, evidence
from forebay.advice.file_metrics import FileView, is_buffered, mean_bytes
from forebay.advice.model import Evidence
from forebay.advice.registry import file_rule
from forebay.advice.unbound_finding import Draft
from forebay.quantities import count, size

COLLECTIVE_CALLS = {"write": "MPI_File_write_at_all", "read": "MPI_File_read_at_all"}


def way_seconds(view: FileView, way: Way) -> float | None:
    """Time in one direction of the slowest rank; else of the whole file."""
    asked = view.asked(way)
    if asked.slowest_rank_s is not None:
        return asked.slowest_rank_s
    if asked.seconds is not None and view.ranks:
        return asked.seconds / view.ranks
    return view.seconds


def access_evidence(view: FileView, way: Way) -> tuple[Evidence, ...]:
    """How the program called, and what became of it."""
    asked, system = view.asked(way), view.system(way)
    shown = [
        evidence(view.source, "collective calls", asked.collective, "calls", way),
        evidence(view.source, "independent calls", asked.independent, "calls", way),
        evidence(view.source, "mean call", mean_bytes(asked), "bytes", way),
        evidence(view.source, "system calls", system.calls, "calls", way),
        evidence(view.source, "mean system call", mean_bytes(system), "bytes", way),
    ]
    return tuple(item for item in shown if item.value is not None)


@file_rule
def collective_buffering_off(view: FileView) -> Iterator[Draft]:
    """Collective calls that end as many small system calls."""
    for way in WAYS:
        if is_buffered(view, way) is not False:
            continue
        system = view.system(way)
        hint = view.hint(f"romio_cb_{way}")
        by_hint = f" because of the hint romio_cb_{way}={hint}" if hint == "disable" else ""
        yield Draft(
            code="collective-buffering-off",
            level="problem",
            file=view.file.path,
            title=f"Collective {way}s of {view.name} are not buffered{by_hint}: "
            f"{count(system.calls or 0)} system calls of {size(mean_bytes(system) or 0)} on average",
            evidence=access_evidence(view, way),
            rule="Collective buffering joins the pieces of all ranks into large calls; system calls far "
            "smaller than what each rank asks for in one collective call show that it is off.",
            source="ROMIO Users Guide, section on hints; measured: 23,040 system writes become 5 "
            "(docs/reference/advice.md)",
            action=f"Switch collective buffering on for this file, and take romio_cb_{way}=disable out "
            "of the job script, of ROMIO_HINTS, and of the program.",
            hints={f"romio_cb_{way}": "enable"},
            seconds=way_seconds(view, way),
        )


@file_rule
def data_sieving(view: FileView) -> Iterator[Draft]:
    """Reads that were made in order to write."""
    collective, system = view.file.collective, view.system("write")
    rmw_bytes = collective.rmw_bytes if collective else None
    if not rmw_bytes or not system.bytes or rmw_bytes < thresholds.RMW_BYTES_MIN:
        return
    if rmw_bytes < thresholds.RMW_SHARE_MIN * system.bytes:
        return
    asked = view.asked("write")
    if asked.collective and is_buffered(view, "write") is not False:
        remedy = {"striping_unit": str(view.file.stripe_bytes)} if view.file.stripe_bytes else {}
        action = "Let each collective call write whole blocks, so that nothing has to be read around them"
        action += ": align the ranges of the aggregators to the stripe unit." if remedy else "."
    elif asked.collective:
        remedy = {"romio_cb_write": "enable", "romio_ds_write": "disable"}
        action = "Let collective buffering join the pieces instead of data sieving."
    else:
        remedy = {"romio_ds_write": "disable"}
        action = f"Switch data sieving off; better, call {COLLECTIVE_CALLS['write']}, which joins the pieces."
    yield Draft(
        code="data-sieving",
        level="problem",
        file=view.file.path,
        title=f"{size(rmw_bytes)} of {view.name} were read in order to write {size(system.bytes)}",
        evidence=(
            evidence(view.source, "rmw calls", collective.rmw_calls, "calls"),
            evidence(view.source, "rmw bytes", rmw_bytes, "bytes"),
            evidence(view.source, "system bytes", system.bytes, "bytes"),
        ),
        rule="Data sieving reads a whole region, changes pieces of it and writes it back under a lock; a "
        "file that is only written should need no reads.",
        source="ROMIO Users Guide; Cray's course on parallel I/O (2012)",
        action=action,
        hints=remedy,
        seconds=way_seconds(view, "write"),
    )


def more_aggregators(view: FileView, way: Way) -> int | None:
    """How many aggregators to try next; None: no more than there are.

    Twice as many as now, at least four for each node and one for each stripe; each serves at least two ranks,
    and their number divides that of the ranks (KAUST's burst buffer talk, 2018).
    """
    now = view.aggregators(way)
    if not now:
        return None
    wanted = max(2 * now, 4 * (view.program.hosts or 1), view.file.stripe_count or 1)
    ranks = view.ranks
    if ranks is None:
        return wanted
    fitting = (number for number in range(min(wanted, ranks // 2), now, -1) if ranks % number == 0)
    return next(fitting, None)


def aggregator_hints(view: FileView, aggregators: int) -> dict[str, str]:
    """`cb_nodes`, and what lets a node have more than one of them: ROMIO's default is one for each node."""
    hints = {"cb_nodes": str(aggregators)}
    if view.source != "cray":
        hints["cb_config_list"] = "*:*"
    return hints


@file_rule
def few_aggregators(view: FileView) -> Iterator[Draft]:
    """One aggregator for each node, or fewer, with work for more."""
    for way in WAYS:
        now, system = view.aggregators(way), view.system(way)
        proposed = more_aggregators(view, way)
        if not now or proposed is None or not is_buffered(view, way) or view.ranks is None:
            continue
        hosts = view.program.hosts or 1
        large = (mean_bytes(system) or 0) >= thresholds.AGGREGATED_CALL_BYTES_MIN
        if now > hosts or view.ranks < thresholds.RANKS_PER_AGGREGATOR_MIN * now:
            continue
        if not large or (system.bytes or 0) < thresholds.AGGREGATED_BYTES_MIN:
            continue
        exchange_s = view.asked(way).rest_s
        shown = [
            evidence(view.source, "aggregators", now, "ranks", way),
            Evidence(counter="ranks that opened the file", value=view.ranks, unit="ranks"),
            evidence(view.source, "hosts", view.program.hosts, "nodes"),
            evidence(view.source, "system bytes", system.bytes, "bytes", way),
            Evidence(counter="time between ranks, summed over ranks", value=exchange_s, unit="s"),
        ]
        yield Draft(
            code="few-aggregators",
            level="suggestion",
            file=view.file.path,
            title=f"{count(now)} of {count(view.ranks)} ranks {'move' if now > 1 else 'moves'} all data of "
            f"{view.name}; {proposed} aggregators may be faster",
            evidence=tuple(item for item in shown if item.value is not None),
            rule="One aggregator for each node seldom keeps parallel storage busy; the number of aggregators "
            "should divide the number of ranks and leave each at least two.",
            source="KAUST's burst buffer talk (2018)",
            action=f"Try {proposed} aggregators and compare the two runs.",
            hints=aggregator_hints(view, proposed),
            seconds=way_seconds(view, way),
        )


@file_rule
def small_collective(view: FileView) -> Iterator[Draft]:
    """Very many collective calls that each move next to nothing."""
    for way in WAYS:
        asked = view.asked(way)
        mean = mean_bytes(asked)
        if mean is None or mean >= thresholds.SMALL_COLLECTIVE_BYTES or is_buffered(view, way) is False:
            continue
        if (asked.collective or 0) < thresholds.SMALL_CALLS_MIN:
            continue
        spent_s = Evidence(counter="time between ranks, summed over ranks", value=asked.rest_s, unit="s")
        yield Draft(
            code="small-collective",
            level="problem",
            file=view.file.path,
            title=f"{count(asked.collective or 0)} collective {way}s of {view.name} move {size(mean)} "
            "on each rank",
            evidence=(*access_evidence(view, way), spent_s),
            rule="In a collective call all ranks agree on who moves what; for a few KiB that takes "
            "longer than moving them.",
            source="KAUST's burst buffer talk (2018): 2.3 million collective reads of wrfbdy; the limits "
            "are ours",
            action="Move more in one call: PnetCDF's non-blocking calls and one wait, or a larger piece "
            "at once.",
            seconds=way_seconds(view, way),
        )


@file_rule
def idle_aggregators(view: FileView) -> Iterator[Draft]:
    """Collective writes in which one aggregator works and the others have nothing to do."""
    aggregators = view.aggregators("write") or 0
    active = view.file.collective.active if view.file.collective else None
    rounds = sum(active or ())
    if not active or rounds < thresholds.IDLE_ROUNDS_MIN or aggregators < thresholds.IDLE_AGGREGATORS_MIN:
        return
    if active[0] < thresholds.IDLE_ROUNDS_SHARE_MIN * rounds or is_buffered(view, "write") is False:
        return
    unit = view.file.stripe_bytes
    smaller = {"striping_unit": str(unit // 2)} if unit and unit > thresholds.STRIPE_UNIT_BYTES_MIN else {}
    yield Draft(
        code="idle-aggregators",
        level="suggestion",
        file=view.file.path,
        title=f"Of {aggregators} aggregators of {view.name} one alone wrote in {count(active[0])} of "
        f"{count(rounds)} collective writes",
        evidence=(
            evidence(view.source, "active", ",".join(map(str, active)), "collective writes"),
            evidence(view.source, "aggregators", aggregators, "ranks"),
        ),
        rule="A collective call that is smaller than aggregators times stripe unit leaves aggregators idle.",
        source="Cray's statistics of MPI-IO, line 'aggregators active'",
        action="Write more in one call (PnetCDF: non-blocking calls and one wait), or halve the stripe unit.",
        hints=smaller,
        seconds=way_seconds(view, "write"),
    )


@file_rule
def uneven_aggregators(view: FileView) -> Iterator[Draft]:
    """Balance among those that write for others, never against the ranks that hand their data over."""
    moved = [writer.bytes for writer in view.file.writers if writer.aggregator]
    if len(moved) < 2 or not is_buffered(view, "write"):
        return
    mean = sum(moved) / len(moved)
    if mean <= 0 or max(moved) < thresholds.UNEVEN_RATIO_MIN * mean:
        return
    yield Draft(
        code="uneven-aggregators",
        level="suggestion",
        file=view.file.path,
        title=f"One aggregator of {view.name} wrote {max(moved) / mean:.1f} times the mean of the "
        f"{len(moved)}",
        evidence=(
            Evidence(counter="bytes of the busiest aggregator", value=max(moved), unit="bytes"),
            Evidence(counter="mean bytes of an aggregator", value=mean, unit="bytes"),
        ),
        rule="The slowest aggregator decides when a collective call ends.",
        source="KAUST's burst buffer talk (2018); the limit is ours",
        action="Use a number of aggregators that divides the number of ranks, and a smaller "
        "cb_buffer_size, so that the work goes round more evenly.",
        seconds=way_seconds(view, "write"),
    )


@file_rule
def hints_without_effect(view: FileView) -> Iterator[Draft]:
    """Hints that were asked for and that the MPI did not obey."""
    ignored = view.hints.without_effect
    if not ignored:
        return
    names = ", ".join(f"{hint.key}={hint.asked}" for hint in ignored)
    remedy = {}
    if any(hint.key == "cb_nodes" for hint in ignored) and "cb_config_list" not in view.hints.environment:
        asked = next(hint.asked for hint in ignored if hint.key == "cb_nodes")
        remedy = {"cb_nodes": asked, "cb_config_list": "*:*"}
        action = "Allow more than one aggregator on a node: cb_config_list goes with cb_nodes."
    else:
        action = "Take it out, or use a value that this MPI knows; `forebay report` shows what it does use."
    yield Draft(
        code="hints-without-effect",
        level="problem",
        file=view.file.path,
        title=f"Hints of {view.name} had no effect: {names}",
        evidence=tuple(
            Evidence(counter=f"hints.without_effect: {hint.key}={hint.asked}", value=hint.seen)
            for hint in ignored
        ),
        rule="A hint is a request: an MPI library silently ignores what it does not know or cannot grant.",
        source="MPI standard, chapter on I/O; compared with what was observed (docs/reference/mpi.md)",
        action=action,
        hints=remedy,
        seconds=view.seconds,
    )
