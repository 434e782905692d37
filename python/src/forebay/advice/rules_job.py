"""Rules about a job, or one of its programs, as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from forebay.advice import thresholds
from forebay.advice.file_metrics import JobView, program_name
from forebay.advice.model import Evidence
from forebay.advice.registry import job_rule
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.quantities import count, duration, percent


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
    """Programs that ended without MPI_Finalize, and processes that were killed in a job that failed."""
    if view.profile.job.running:
        return
    named = set()
    for program in metrics.not_ended_properly(view.profile):
        name = program_name(program)
        if not program.uses_mpi and name in named:
            continue
        named.add(name)
        aborted = program.aborted_code is not None
        how = (
            f"called MPI_Abort({program.aborted_code}) on rank {program.aborted_rank}"
            if aborted
            else "ended without MPI_Finalize"
            if program.uses_mpi
            else "was killed"
        )
        known = "what it did until then is known" if program.recovered else "what it did is not known"
        yield Draft(
            code="aborted" if aborted else "no-finalize",
            level="problem",
            title=f"{name} {how}: {known}",
            evidence=(Evidence(counter="finished", value="false"),),
            rule="The statistics are joined in MPI_Finalize. Of a program that does not reach it there is "
            "what its ranks left when they ended.",
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
def emulated(view: JobView) -> Iterator[Draft]:
    """Times of an emulation are no times of a machine."""
    if view.profile.job.emulated is None:
        return
    share = view.io_share
    io_time = f"; I/O took {duration(share.slowest_s)}" if share and share.slowest_s is not None else ""
    yield Draft(
        code="emulated",
        level="note",
        title=f"The file system was emulated ({view.profile.job.emulated}){io_time} in that model",
        evidence=(Evidence(counter="emulated", value=view.profile.job.emulated),),
        rule="The emulation delays calls by a model; what it says of settings holds for the model.",
        source="docs/explanation/emulation.md",
        action="Measure again on the machine itself.",
    )
