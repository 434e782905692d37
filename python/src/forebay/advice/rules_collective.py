"""Rules about collective buffering, data sieving and hints of MPI-IO files."""

from __future__ import annotations

from collections.abc import Iterator

from forebay.advice import thresholds
from forebay.advice.counters import DIRECTIONS, evidence
from forebay.advice.file_metrics import (
    FileView,
    are_small,
    direction_seconds,
    is_buffered,
    mean_bytes,
    small_share,
    typical_call_size,
)
from forebay.advice.model import Evidence
from forebay.advice.registry import file_rule
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.profiles.model import Direction
from forebay.quantities import count, percent, size

COLLECTIVE_CALLS = {"write": "MPI_File_write_at_all", "read": "MPI_File_read_at_all"}


def access_evidence(view: FileView, direction: Direction) -> tuple[Evidence, ...]:
    """How the program called, and what became of it."""
    asked, system = view.asked(direction), view.system(direction)
    shown = [
        evidence(view.source, "collective calls", asked.collective, "calls", direction),
        evidence(view.source, "independent calls", asked.independent, "calls", direction),
        evidence(view.source, "mean call", mean_bytes(asked), "bytes", direction),
        evidence(view.source, "system calls", system.calls, "calls", direction),
        evidence(view.source, "mean system call", mean_bytes(system), "bytes", direction),
    ]
    return tuple(item for item in shown if item.value is not None)


@file_rule
def collective_buffering_off(view: FileView) -> Iterator[Draft]:
    """Collective calls that end as many small system calls."""
    for direction in DIRECTIONS:
        if is_buffered(view, direction) is not False:
            continue
        system = view.system(direction)
        hint = view.hint(f"romio_cb_{direction}")
        by_hint = f" because of the hint romio_cb_{direction}={hint}" if hint == "disable" else ""
        yield Draft(
            code="collective-buffering-off",
            parts=(direction, "waiting"),
            level="problem",
            file=view.file.path,
            title=f"Collective {direction}s of {view.name} are not buffered{by_hint}: "
            f"{count(system.calls or 0)} system calls of {size(mean_bytes(system) or 0)} on average",
            evidence=access_evidence(view, direction),
            rule="Collective buffering joins the pieces of all ranks into large calls; system calls far "
            "smaller than what each rank asks for in one collective call show that it is off.",
            source="ROMIO Users Guide, section on hints; measured: 23,040 system writes become 5 "
            "(docs/reference/advice.md)",
            action=f"Switch collective buffering on for this file, and take romio_cb_{direction}=disable out "
            "of the job script, of ROMIO_HINTS, and of the program.",
            hints=view.new_hints({f"romio_cb_{direction}": "enable"}),
            seconds=direction_seconds(view, direction),
        )


@file_rule
def data_sieving(view: FileView) -> Iterator[Draft]:
    """Reads that were made in order to write, of data or of holes."""
    collective, system = view.file.collective, view.system("write")
    if collective is None or not (_reads_bytes(view) or _reads_holes(view)):
        return
    asked = view.asked("write")
    is_joined = bool(asked.collective) and is_buffered(view, "write") is not False
    if is_joined:
        action = "Let each collective call write whole blocks without holes, so that nothing has to be read "
        action += "around them; else switch data sieving off, so that only the pieces are written."
        remedy = {"romio_ds_write": "disable"}
    elif asked.collective:
        remedy = {"romio_cb_write": "enable", "romio_ds_write": "disable"}
        action = "Let collective buffering join the pieces instead of data sieving."
    else:
        remedy = {"romio_ds_write": "disable"}
        action = f"Switch data sieving off; better, call {COLLECTIVE_CALLS['write']}, which joins the pieces."
    read = f"{size(collective.rmw_bytes)} of {view.name} were read in order to write {size(system.bytes)}"
    holes = (
        f"{view.name}: {count(collective.rmw_calls)} reads in order to write; {size(asked.bytes)} became "
        f"{size(system.bytes)} of system writes"
    )
    shown = [
        evidence(view.source, "rmw calls", collective.rmw_calls, "calls"),
        evidence(view.source, "rmw bytes", collective.rmw_bytes, "bytes"),
        evidence(view.source, "system bytes", system.bytes, "bytes"),
        Evidence(counter="bytes that the program wrote", value=asked.bytes, unit="bytes"),
        Evidence(counter="time in these reads, summed over ranks", value=collective.rmw_s, unit="s"),
    ]
    yield Draft(
        code="data-sieving",
        parts=("rmw", "write", "waiting"),
        level="problem",
        file=view.file.path,
        title=read if _reads_bytes(view) else holes,
        evidence=tuple(item for item in shown if item.value is not None),
        rule="Data sieving reads a whole region, changes pieces of it and writes it back under a lock; a "
        "file that is only written should need no reads.",
        source="ROMIO Users Guide; Cray's course on parallel I/O (2012)",
        action=action,
        hints=view.new_hints(remedy),
        seconds=direction_seconds(view, "write"),
    )


@file_rule
def sieved_reads(view: FileView) -> Iterator[Draft]:
    """Independent reads of pieces, for which the system reads all that is between them."""
    asked, system = view.asked("read"), view.system("read")
    own = (asked.bytes or 0) if (asked.independent or 0) > (asked.collective or 0) else 0
    collective = view.file.collective
    read = (system.bytes or 0) - ((collective.rmw_bytes or 0) if collective else 0)
    if not own or read < thresholds.SIEVED_RATIO_MIN * own or read - own < thresholds.REREAD_BYTES_MIN:
        return
    yield Draft(
        code="sieved-reads",
        parts=("read",),
        level="suggestion",
        file=view.file.path,
        title=f"{size(read)} of {view.name} were read for {size(own)} that the program asked for",
        evidence=access_evidence(view, "read"),
        rule="Data sieving reads whole regions where a call asks for pieces of them.",
        source="ROMIO Users Guide; the limit is ours",
        action=f"Call {COLLECTIVE_CALLS['read']}, which reads each region once for all ranks; or switch data "
        "sieving of reads off.",
        hints=view.new_hints({"romio_ds_read": "disable"}),
        seconds=direction_seconds(view, "read"),
    )


def _reads_bytes(view: FileView) -> bool:
    collective, written = view.file.collective, view.system("write").bytes or 0
    least = max(thresholds.RMW_BYTES_MIN, thresholds.RMW_SHARE_MIN * written)
    return bool(collective and written and (collective.rmw_bytes or 0) >= least)


def _reads_holes(view: FileView) -> bool:
    """By calls, and by what is written: of a hole, a read returns nothing."""
    collective, system = view.file.collective, view.system("write")
    calls = (collective.rmw_calls if collective else 0) or 0
    if calls < max(thresholds.RMW_CALLS_MIN, thresholds.RMW_CALLS_SHARE_MIN * (system.calls or 0)):
        return False
    return (system.bytes or 0) >= thresholds.RMW_AMPLIFIED_MIN * (view.asked("write").bytes or 0)


def more_aggregators(view: FileView, direction: Direction) -> int | None:
    """How many aggregators to try next; None: no more than there are.

    Twice as many as now, at least four for each node and one for each stripe; each serves at least two ranks,
    and their number divides that of the ranks (KAUST's burst buffer talk, 2018).
    """
    now = view.aggregators(direction)
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
    for direction in DIRECTIONS:
        now, system = view.aggregators(direction), view.system(direction)
        proposed = more_aggregators(view, direction)
        if not now or proposed is None or not is_buffered(view, direction) or view.ranks is None:
            continue
        if view.file.stripe_count is not None and now >= view.file.stripe_count:
            continue  # one aggregator for each target: more of them would wait for each other's locks
        hosts = view.program.hosts or 1
        large = (mean_bytes(system) or 0) >= thresholds.AGGREGATED_CALL_BYTES_MIN
        if now > hosts or view.ranks < thresholds.RANKS_PER_AGGREGATOR_MIN * now:
            continue
        if not large or (system.bytes or 0) < thresholds.AGGREGATED_BYTES_MIN:
            continue
        exchange_s = view.asked(direction).rest_s
        shown = [
            evidence(view.source, "aggregators", now, "ranks", direction),
            Evidence(counter="ranks that opened the file", value=view.ranks, unit="ranks"),
            evidence(view.source, "hosts", view.program.hosts, "nodes"),
            evidence(view.source, "system bytes", system.bytes, "bytes", direction),
            Evidence(counter="time between ranks, summed over ranks", value=exchange_s, unit="s"),
        ]
        yield Draft(
            code="few-aggregators",
            parts=(direction, "waiting"),
            level="suggestion",
            file=view.file.path,
            title=f"{count(now)} of {count(view.ranks)} ranks {'move' if now > 1 else 'moves'} all data of "
            f"{view.name}; {proposed} aggregators may be faster",
            evidence=tuple(item for item in shown if item.value is not None),
            rule="One aggregator for each node seldom keeps parallel storage busy; the number of aggregators "
            "should divide the number of ranks and leave each at least two.",
            source="KAUST's burst buffer talk (2018)",
            action=f"Try {proposed} aggregators and compare the two runs.",
            hints=view.new_hints(aggregator_hints(view, proposed)),
            seconds=direction_seconds(view, direction),
        )


@file_rule
def collective_overhead(view: FileView) -> Iterator[Draft]:
    """Large collective calls whose time is spent between the ranks, not in the storage."""
    for direction in DIRECTIONS:
        asked, system = view.asked(direction), view.system(direction)
        calls_s, moving_s = (
            direction_seconds(view, direction),
            metrics.slowest_direction_s(view.file, "POSIX", direction),
        )
        if not calls_s or moving_s is None or not is_buffered(view, direction) or _reads_holes(view):
            continue
        between_s = calls_s - moving_s
        large = 1 - small_share(asked, thresholds.OVERHEAD_CALL_BYTES_MIN) >= thresholds.SMALL_SHARE_MIN
        is_contiguous = view.mpiio is not None and view.mpiio.views == 0
        if not large or not is_contiguous or between_s < thresholds.OVERHEAD_SHARE_MIN * calls_s:
            continue
        if (asked.independent or 0) > (asked.collective or 0):
            continue
        if not metrics.has_all_bytes(system.bytes, asked.bytes):
            continue  # ranks read the same bytes, and the system once; or not all calls are known
        shown = [
            *access_evidence(view, direction),
            Evidence(counter=f"time in {direction} calls of the slowest rank", value=calls_s, unit="s"),
            Evidence(counter=f"time in system {direction}s of the slowest rank", value=moving_s, unit="s"),
            evidence(view.source, "system bytes", system.bytes, "bytes", direction),
        ]
        yield Draft(
            code="collective-overhead",
            parts=("waiting",),
            level="suggestion",
            file=view.file.path,
            title=f"{percent(between_s / calls_s)} of the time of collective {direction}s of {view.name} is "
            f"spent between the ranks, and each call moves {size(mean_bytes(asked))} in one piece",
            evidence=tuple(shown),
            rule="Collective buffering sends all data through a few ranks; for large pieces without holes "
            "that gains little.",
            source="Cray's course on parallel I/O (2012); the limits are ours",
            action=f"Try independent calls, or switch collective buffering of {direction}s off, and compare.",
            hints=view.new_hints({f"romio_cb_{direction}": "disable"}),
            seconds=between_s,
        )


@file_rule
def small_collective(view: FileView) -> Iterator[Draft]:
    """Very many collective calls that each move next to nothing."""
    for direction in DIRECTIONS:
        asked = view.asked(direction)
        most = thresholds.SMALL_COLLECTIVE_BYTES
        least = max(thresholds.SMALL_CALLS_MIN, thresholds.SMALL_COLLECTIVE_PER_RANK_MIN * (view.ranks or 1))
        if not are_small(asked, most) or is_buffered(view, direction) is False:
            continue
        if (asked.collective or 0) < least:
            continue
        spent_s = Evidence(counter="time between ranks, summed over ranks", value=asked.rest_s, unit="s")
        yield Draft(
            code="small-collective",
            parts=(direction, "waiting"),
            level="problem",
            file=view.file.path,
            title=f"{count(asked.collective or 0)} collective {direction}s of {view.name} move "
            f"{typical_call_size(asked, most)} on each rank",
            evidence=(*access_evidence(view, direction), spent_s),
            rule="In a collective call all ranks agree on who moves what; for a few KiB that takes "
            "longer than moving them.",
            source="KAUST's burst buffer talk (2018): 2.3 million collective reads of wrfbdy; the limits "
            "are ours",
            action=f"Move more in one call{_by_library(view)}.",
            seconds=direction_seconds(view, direction),
        )


def _by_library(view: FileView) -> str:
    if "PnetCDF" in view.libraries:
        return ": PnetCDF's non-blocking calls and one wait join many"
    if "HDF5" in view.libraries:
        return ": one H5Dwrite or H5Dread of a larger selection, or H5Dwrite_multi"
    return ", for example by a derived datatype of many pieces"


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
        parts=("write", "waiting"),
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
        action=f"Write more in one call{_by_library(view)}; or halve the stripe unit.",
        hints=view.new_hints(smaller),
        seconds=direction_seconds(view, "write"),
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
        parts=("write", "waiting"),
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
        seconds=direction_seconds(view, "write"),
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
        hints=view.new_hints(remedy),
        seconds=view.seconds,
    )
