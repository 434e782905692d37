"""Whether a job can be tuned, and whether that is worth a run, from the profile of its default run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from forebay.advice.thresholds import IO_SHARE_MIN
from forebay.profiles.metrics import io_share
from forebay.profiles.model import File, Profile, Program
from forebay.quantities import percent
from forebay.tune.errors import TuneError
from forebay.tune.settings.job_view import of_any_job


def mpi_programs(profile: Profile) -> list[Program]:
    """Those of the job that ran under MPI, in order."""
    return [program for program in profile.programs if program.uses_mpi]


def check_programs(profile: Profile) -> None:
    """TuneError if there is no program of MPI whose I/O is known."""
    programs = mpi_programs(profile)
    if not programs:
        raise TuneError(
            "the job ran no MPI program that was seen: there is nothing that could be tuned",
            "settings are those of MPI-IO and of libraries above it; is the program linked statically, "
            "or started on other nodes without its environment?",
        )
    if not any(program.finished for program in programs):
        raise TuneError(
            "no MPI program of the job came to MPI_Finalize, so nothing is known of its I/O",
            "`forebay why` on the record of the run tells what is known",
        )


def nothing_to_gain(profile: Profile) -> str | None:
    """Why no setting of MPI-IO can make the job faster, if so."""
    share = io_share(profile)
    slowest = None if share is None else share.slowest
    if share is not None and slowest is not None and slowest < IO_SHARE_MIN and not profile.unread:
        return f"I/O is {percent(slowest)} of the run: nothing to gain"
    if not any("MPI-IO" in file.layers for program in mpi_programs(profile) for file in program.files):
        return "no file was opened through MPI-IO: there is no setting that could act on the job's files"
    return None


def check_own_directory(profile: Profile, directory: Path, copy: Path, variables: Mapping[str, str]) -> None:
    """TuneError if a run in `copy`, which may be below `directory`, wrote to `directory` itself.

    The allocation that `variables` name is that of the run, wherever it is.
    """
    of_run = re.compile("|".join([re.escape(f"{copy}/"), *map(of_any_job, variables.values())]))
    for program in mpi_programs(profile):
        for file in program.files:
            path = os.path.realpath(file.path)
            is_own = path.startswith(f"{directory}/") and not of_run.match(path)
            if is_own and not of_run.match(file.path) and is_written(file):
                raise TuneError(
                    f"the job writes to {file.path} by its full name, not to the copy that runs work in",
                    "make the names in its input relative to the script's directory, or write that "
                    "directory's name into the script, a comment does: then it is seen in its place",
                )


def is_written(file: File) -> bool:
    """Through any layer."""
    return any(layer.write.bytes for layer in file.layers.values())


def warnings(profile: Profile, directory: Path, copy: Path, variables: Mapping[str, str]) -> list[str]:
    """Warnings about files that runs change in directories that are not restored between runs.

    `directory`: where the job sees `copy`.
    """
    of_run = re.compile("|".join(map(of_any_job, variables.values())) or r"(?!)")
    written = {
        file.path
        for program in mpi_programs(profile)
        for file in program.files
        if is_written(file) and not of_run.match(file.path)
    }
    paths = {re.sub(rf"^{re.escape(str(directory))}(?=/)", lambda _: str(copy), path) for path in written}
    reached = {os.path.realpath(path) for path in paths}
    outside = sorted({os.path.dirname(path) for path in reached if not path.startswith(f"{copy}/")})
    if not outside:
        return []
    more = ", ..." if len(outside) > 3 else ""
    return [
        f"the job writes to {', '.join(outside[:3])}{more}, outside of its own directory: "
        "what is there is neither put back between runs nor kept from them"
    ]


def io_s(profile: Profile) -> float | None:
    """Seconds of the slowest rank in I/O calls; None if any of the MPI programs does not tell."""
    programs = mpi_programs(profile)
    if not programs or not all(program.finished for program in programs):
        return None
    share = io_share(profile)
    return None if share is None else share.slowest_s
