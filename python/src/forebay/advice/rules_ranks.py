"""Rules about ranks, and about storage targets, that take longer than others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from forebay.advice import thresholds
from forebay.advice.file_metrics import FileView, JobView, program_name, sole_rank
from forebay.advice.model import Evidence
from forebay.advice.registry import file_rule, job_rule
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.profiles.model import STREAMS, Program
from forebay.profiles.targets import TargetUse, by_target, main_direction
from forebay.quantities import count, duration, percent, size


@job_rule
def one_rank(view: JobView) -> Iterator[Draft]:
    """One rank moves nearly everything, and not as an aggregator of collective calls."""
    for program in view.profile.programs:
        by_rank: dict[int, int] = defaultdict(int)
        own_s: dict[int, float] = defaultdict(float)
        total = 0
        for file in program.files:
            top = metrics.top_layer(file)
            if top is None or file.path in STREAMS:
                continue
            moved = (top[1].read.bytes or 0) + (top[1].write.bytes or 0)
            total += moved
            rank = sole_rank(file)
            if rank is not None:
                by_rank[rank] += moved
                own_s[rank] += metrics.slowest_rank_s(file, top[1]) or 0.0
        busiest = max(by_rank, key=lambda rank: by_rank[rank], default=None)
        if busiest is None or (program.ranks or 1) < thresholds.ONE_RANK_RANKS_MIN:
            continue
        if by_rank[busiest] < max(thresholds.ONE_RANK_SHARE_MIN * total, thresholds.ONE_RANK_BYTES_MIN):
            continue
        yield Draft(
            code="one-rank",
            parts=("write", "read"),
            level="problem",
            title=f"Rank {busiest} alone moves {percent(by_rank[busiest] / total)} of the bytes of "
            f"{program_name(program)}, "
            f"while {count((program.ranks or 1) - 1)} ranks wait or send to it",
            evidence=(
                Evidence(counter=f"bytes of rank {busiest}", value=by_rank[busiest], unit="bytes"),
                Evidence(counter="bytes of all ranks", value=total, unit="bytes"),
                Evidence(counter=f"I/O time of rank {busiest}", value=own_s[busiest], unit="s"),
            ),
            rule="One process cannot fill parallel storage.",
            source="NERSC's paper on its burst buffer (2016); the limits are ours",
            action="Write with all ranks: collective MPI-IO, PnetCDF or parallel HDF5"
            + (" (io_form_history=11)." if program_name(program).startswith("wrf") else "."),
            seconds=own_s[busiest],
        )


def _comparable(program: Program) -> dict[int, TargetUse]:
    """Storage targets with enough files of one direction to compare them by."""
    found = by_target(program, main_direction(program), thresholds.TARGET_FILE_BYTES_MIN)
    return {target: one for target, one in found.items() if one.files >= thresholds.TARGET_FILES_MIN}


def slow_targets(program: Program) -> list[int]:
    """Storage targets that take several times as long for each byte as the median one; few, or none."""
    found = _comparable(program)
    if len(found) < thresholds.SLOW_TARGETS_MIN:
        return []
    usual = median(one.s_per_byte for one in found.values())
    slow = [
        target for target, one in found.items() if one.s_per_byte >= thresholds.SLOW_TARGET_RATIO_MIN * usual
    ]
    most = max(1, thresholds.SLOW_TARGETS_SHARE_MAX * len(found))
    return sorted(slow, key=lambda target: -found[target].s_per_byte) if len(slow) <= most else []


@job_rule
def slow_target(view: JobView) -> Iterator[Draft]:
    """One storage target that keeps all who wait for it."""
    for program in view.profile.programs:
        slow, found = slow_targets(program), _comparable(program)
        if not slow:
            continue
        others = [one for target, one in found.items() if target not in slow]
        usual_s = sum(one.seconds for one in others) / sum(one.files for one in others)
        slow_s = sum(found[target].seconds for target in slow) / sum(found[target].files for target in slow)
        at_stake_s = max(found[target].slowest_s for target in slow) - usual_s
        if at_stake_s < thresholds.SLOWER_S_MIN:
            continue
        names = ", ".join(map(str, slow))
        yield Draft(
            code="slow-target",
            parts=("write", "read"),
            level="problem",
            title=f"Files on storage target{'s' if len(slow) > 1 else ''} {names} take {duration(slow_s)} on "
            f"average, those on the other {len(others)} take {duration(usual_s)}",
            evidence=(
                Evidence(counter="LUSTRE OST ids of the slow files", value=names),
                Evidence(counter="mean time of a file there", value=slow_s, unit="s"),
                Evidence(counter="mean time of a file elsewhere", value=usual_s, unit="s"),
            ),
            rule="A run ends with its slowest rank, and a rank waits for the target that has its file.",
            source="TOKIO's study of NERSC's file systems (2018); the limits are ours",
            action=f"Report target {names} to those who run the file system, and keep it out of the next run "
            "(lfs setstripe -o, or a pool).",
            seconds=at_stake_s,
        )


@job_rule
def stragglers(view: JobView) -> Iterator[Draft]:
    """Few ranks that take much longer than the others for the same bytes."""
    for program in view.profile.programs:
        found = metrics.of_own_files(program)
        ranks = program.ranks or 1
        if len(found) < max(thresholds.STRAGGLER_RANKS_MIN, ranks / 2):
            continue
        usual_s = median(one.seconds for one in found.values())
        usual_bytes = median(one.bytes for one in found.values())
        usual_calls = median(one.calls for one in found.values())
        slow = [
            rank
            for rank, one in found.items()
            if one.seconds >= max(thresholds.STRAGGLER_RATIO_MIN * usual_s, usual_s + thresholds.SLOWER_S_MIN)
            and one.bytes <= thresholds.STRAGGLER_WORK_RATIO_MAX * usual_bytes
            and one.calls <= thresholds.STRAGGLER_WORK_RATIO_MAX * usual_calls
        ]
        if not slow or len(slow) > max(1, thresholds.STRAGGLER_RANKS_SHARE_MAX * ranks):
            continue
        slow.sort(key=lambda rank: -found[rank].seconds)
        worst = found[slow[0]]
        if slow_targets(program):
            continue  # the finding about the target names the cause
        more = f" (and {count(len(slow) - 1)} more ranks are slow)" if len(slow) > 1 else ""
        yield Draft(
            code="straggler",
            parts=("write", "read", "metadata"),
            level="problem",
            title=f"Rank {slow[0]} of {program_name(program)} takes {duration(worst.seconds)} for its "
            f"{size(worst.bytes)}, the median rank {duration(usual_s)} for {size(usual_bytes)}{more}",
            evidence=(
                Evidence(counter="slow ranks", value=", ".join(map(str, slow[:8]))),
                Evidence(counter=f"I/O time of rank {slow[0]}", value=worst.seconds, unit="s"),
                Evidence(counter="I/O time of the median rank", value=usual_s, unit="s"),
            ),
            rule="All ranks wait for the slowest one at the next step.",
            source="DXT Explorer's view of stragglers; the limits are ours",
            action="Look at the node of that rank and at the storage target of its files; run again on other "
            "nodes.",
            seconds=worst.seconds - usual_s,
        )


@file_rule
def straggler_in_file(view: FileView) -> Iterator[Draft]:
    """One rank that takes much longer than the others for its part of a shared file."""
    slowest, top, ranks = view.file.slowest, view.top, view.file.ranks or 1
    if slowest is None or top is None or ranks < thresholds.STRAGGLER_RANKS_MIN:
        return
    whole_s = metrics.layer_s(top[1])
    moved = (top[1].read.bytes or 0) + (top[1].write.bytes or 0)
    if whole_s is None or not moved:
        return
    others_s = (whole_s - slowest.seconds) / (ranks - 1)
    if slowest.seconds < max(thresholds.STRAGGLER_RATIO_MIN * others_s, others_s + thresholds.SLOWER_S_MIN):
        return
    if slowest.bytes > thresholds.STRAGGLER_WORK_RATIO_MAX * moved / ranks:
        return
    yield Draft(
        code="straggler",
        parts=("write", "read", "metadata"),
        level="problem",
        file=view.file.path,
        title=f"Rank {slowest.rank} takes {duration(slowest.seconds)} in {view.name}, the other ranks "
        f"{duration(others_s)} on average, and it moves no more than they do",
        evidence=(
            Evidence(counter=f"I/O time of rank {slowest.rank}", value=slowest.seconds, unit="s"),
            Evidence(counter="mean I/O time of the other ranks", value=others_s, unit="s"),
            Evidence(counter=f"bytes of rank {slowest.rank}", value=slowest.bytes, unit="bytes"),
        ),
        rule="All ranks wait for the slowest one at the next step.",
        source="DXT Explorer's view of stragglers; the limits are ours",
        action="Look at the node of that rank, and at what else it does in the file.",
        seconds=slowest.seconds - others_s,
    )
