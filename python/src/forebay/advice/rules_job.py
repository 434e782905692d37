"""Rules about a job, or one of its programs, as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from forebay.advice import thresholds
from forebay.advice.counters import evidence
from forebay.advice.file_metrics import JobView
from forebay.advice.model import Evidence
from forebay.advice.registry import job_rule
from forebay.advice.rules_access import allocation_line
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.profiles.model import Program
from forebay.quantities import count, duration, percent, size


def program_name(program: Program) -> str:
    """Last part of the executable's path."""
    return (program.name or "the program").rpartition("/")[2]


@job_rule
def little_io(view: JobView) -> Iterator[Draft]:
    """The run is computation."""
    share = view.io_share
    if view.is_worth_it or view.profile.unread or share is None or share.slowest is None:
        return
    yield Draft(
        code="little-io",
        level="note",
        title=f"I/O is {percent(share.slowest)} of the run: nothing to gain there",
        evidence=(
            Evidence(counter="I/O of the slowest rank", value=share.slowest_s, unit="s"),
            Evidence(counter="run time", value=share.run_s, unit="s"),
        ),
        rule=f"Below {percent(thresholds.IO_SHARE_MIN)} of the run time no change of the I/O is worth "
        "the work.",
        source="our choice",
        action="Nothing.",
        seconds=share.slowest_s,
    )


@job_rule
def no_finalize(view: JobView) -> Iterator[Draft]:
    """Programs that ended without MPI_Finalize."""
    if view.profile.job.running:
        return
    for program in view.profile.programs:
        if program.finished:
            continue
        aborted = program.aborted_code is not None
        how = (
            f"called MPI_Abort({program.aborted_code}) on rank {program.aborted_rank}"
            if aborted
            else "ended without MPI_Finalize"
        )
        yield Draft(
            code="aborted" if aborted else "no-finalize",
            level="problem",
            title=f"{program_name(program)} {how}: what it did with its files is not known",
            evidence=(Evidence(counter="finished", value="false"),),
            rule="The statistics are joined in MPI_Finalize; a program that is killed, aborts or exits "
            "has none.",
            source="docs/reference/mpi.md",
            action="Look at the job's own output for the reason: `forebay why` has what Forebay knows.",
        )


@job_rule
def not_closed(view: JobView) -> Iterator[Draft]:
    """Files still open in MPI_Finalize: MPI does not promise that what was written is there."""
    for program in view.profile.programs:
        files = [file for file in program.files if file.not_closed and "MPI-IO" in file.layers]
        if not files:
            continue
        more = f" and {count(len(files) - 1)} more files" if len(files) > 1 else ""
        yield Draft(
            code="not-closed",
            level="note",
            title=f"{program_name(program)} did not close {files[0].path.rpartition('/')[2]}{more}",
            file=files[0].path,
            evidence=(
                Evidence(
                    counter="not_closed", value=sum(file.not_closed or 0 for file in files), unit="opens"
                ),
            ),
            rule="Data are sure to be in the file only after MPI_File_close or MPI_File_sync.",
            source="MPI standard, chapter on I/O",
            action="Close the file in the program before MPI_Finalize.",
        )


@job_rule
def metadata_heavy(view: JobView) -> Iterator[Draft]:
    """Opening, closing and asking take more time than moving data."""
    for program in view.profile.programs:
        tops = [top[1] for file in program.files if (top := metrics.top_layer(file)) is not None]
        metadata_s = metrics.known_sum(layer.metadata_s for layer in tops) or 0.0
        total_s = metrics.known_sum(metrics.layer_s(layer) for layer in tops) or 0.0
        run_s, ranks = program.wall_s, program.ranks
        if not run_s or not ranks or metadata_s < thresholds.METADATA_SHARE_MIN * total_s:
            continue
        if metadata_s / ranks < thresholds.IO_SHARE_MIN * run_s:
            continue
        opens = sum(layer.opens or 0 for layer in tops)
        if opens < thresholds.OPENS_PER_RANK_MIN * ranks:
            continue
        yield Draft(
            code="metadata-heavy",
            level="problem",
            title=f"{program_name(program)} spends {percent(metadata_s / total_s)} of its I/O time "
            "opening, closing "
            f"and asking, not moving data: {count(opens)} opens of {count(len(tops))} files",
            evidence=(
                evidence(view.profile.source, "metadata", metadata_s, "s, summed over ranks"),
                evidence(view.profile.source, "opens", opens, "calls"),
                Evidence(counter="files", value=len(tops), unit="files"),
            ),
            rule="One metadata server answers for all nodes; opens and stats do not get faster with more "
            "storage.",
            source="Cray's course on parallel I/O (2012); the limit is ours",
            action="Open once and keep open; open on one rank and broadcast; put many small files into one. "
            "In a burst buffer near the node these calls do not leave the node.",
            lines=_allocation(view, program),
            seconds=metadata_s / ranks,
        )


def _allocation(view: JobView, program: Program) -> tuple[str, ...]:
    needed = sum(metrics.file_bytes(file) or 0 for file in program.files)
    return () if view.profile.job.store or not needed else (allocation_line(needed),)


@job_rule
def many_small_files(view: JobView) -> Iterator[Draft]:
    """Thousands of files under 1 MiB."""
    for program in view.profile.programs:
        sized = [(file, moved) for file in program.files if (moved := metrics.file_bytes(file)) is not None]
        small = [(file, moved) for file, moved in sized if moved < thresholds.SMALL_FILE_BYTES]
        if len(small) < thresholds.SMALL_FILES_MIN or 2 * len(small) < len(sized):
            continue
        mean = sum(moved for _, moved in small) / len(small)
        yield Draft(
            code="many-small-files",
            level="suggestion",
            title=f"{program_name(program)} uses {count(len(small))} files of {size(mean)} on average",
            evidence=(
                Evidence(counter="files under 1 MiB", value=len(small), unit="files"),
                Evidence(counter="mean bytes of these", value=mean, unit="bytes"),
            ),
            rule="The number of files makes metadata the bottleneck.",
            source="Cray's course on parallel I/O (2012); the number is ours",
            action="Write one file for each step, or one archive; or keep them in a burst buffer and "
            "stage out what is needed.",
            lines=_allocation(view, program),
            seconds=metrics.slowest_s_in(program, [file for file, _ in small]),
        )


@job_rule
def opened_by_all(view: JobView) -> Iterator[Draft]:
    """The same small files opened and read by every rank."""
    for program in view.profile.programs:
        found = [
            (file, layer)
            for file in program.files
            if (layer := file.layers.get("POSIX") or file.layers.get("STDIO")) is not None
            and "MPI-IO" not in file.layers
            and (program.ranks or 1) > 1
            and file.ranks == program.ranks
            and (layer.opens or 0) >= max(thresholds.SHARED_OPENS_MIN, program.ranks or 1)
            and not layer.write.bytes
            and (layer.read.bytes or 0) < thresholds.BYTES_PER_OPEN_MAX * (layer.opens or 1)
        ]
        if not found:
            continue
        opens = sum(layer.opens or 0 for _, layer in found)
        yield Draft(
            code="opened-by-all",
            level="suggestion",
            title=f"All {count(program.ranks or 0)} ranks open and read {count(len(found))} small file(s): "
            f"{count(opens)} opens",
            file=found[0][0].path,
            evidence=(evidence(view.profile.source, "opens", opens, "calls"),),
            rule="An open for each rank and file loads the metadata server; one rank could read and "
            "broadcast.",
            source="OLCF's talk on Summit's storage (2018); the limits are ours",
            action="Read small files on one rank and broadcast them (MPI_Bcast).",
            seconds=max((metrics.slowest_rank_s(file, layer) or 0.0 for file, layer in found), default=None),
        )


@job_rule
def one_rank(view: JobView) -> Iterator[Draft]:
    """One rank moves nearly everything, and not as an aggregator of collective calls."""
    for program in view.profile.programs:
        by_rank: dict[int, int] = defaultdict(int)
        own_s: dict[int, float] = defaultdict(float)
        total = 0
        for file in program.files:
            top = metrics.top_layer(file)
            if top is None:
                continue
            moved = (top[1].read.bytes or 0) + (top[1].write.bytes or 0)
            total += moved
            if file.ranks == 1 and file.rank is not None:
                by_rank[file.rank] += moved
                own_s[file.rank] += metrics.layer_s(top[1]) or 0.0
        rank = max(by_rank, key=lambda rank: by_rank[rank], default=None)
        if rank is None or (program.ranks or 1) < thresholds.ONE_RANK_RANKS_MIN:
            continue
        if by_rank[rank] < max(thresholds.ONE_RANK_SHARE_MIN * total, thresholds.ONE_RANK_BYTES_MIN):
            continue
        yield Draft(
            code="one-rank",
            level="problem",
            title=f"Rank {rank} alone moves {percent(by_rank[rank] / total)} of the bytes of "
            f"{program_name(program)}, "
            f"while {count((program.ranks or 1) - 1)} ranks wait or send to it",
            evidence=(
                Evidence(counter=f"bytes of rank {rank}", value=by_rank[rank], unit="bytes"),
                Evidence(counter="bytes of all ranks", value=total, unit="bytes"),
                Evidence(counter=f"I/O time of rank {rank}", value=own_s[rank], unit="s"),
            ),
            rule="One process cannot fill parallel storage.",
            source="NERSC's paper on its burst buffer (2016); the limits are ours",
            action="Write with all ranks: collective MPI-IO, PnetCDF or parallel HDF5 (in WRF: "
            "io_form_history=11).",
            seconds=own_s[rank],
        )


@job_rule
def emulated(view: JobView) -> Iterator[Draft]:
    """Times of an emulation are no times of a machine."""
    if view.profile.job.emulated is None:
        return
    share = view.io_share
    told = f"; I/O took {duration(share.slowest_s)}" if share and share.slowest_s is not None else ""
    yield Draft(
        code="emulated",
        level="note",
        title=f"The file system was emulated ({view.profile.job.emulated}){told} in that model",
        evidence=(Evidence(counter="emulated", value=view.profile.job.emulated),),
        rule="The emulation delays calls by a model; what it says of settings holds for the model.",
        source="docs/explanation/emulation.md",
        action="Measure again on the machine itself.",
    )
