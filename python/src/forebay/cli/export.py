"""`forebay profile export`: a Darshan log of each program of a recorded job."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from forebay.profiles import records, sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Profile, Program

MOUNT_TABLE = Path("/proc/self/mounts")
#: Of the executable's name in the name of a log.
NAME_CHARACTERS_MAX = 100
#: So many steps an error message names.
NAMED_MAX = 10


@click.command(
    "export",
    epilog="""\b
Examples:
  forebay profile export                            the last job: a log of each program, here
  forebay profile export 1763761234567 --step 2 --output two.darshan""",
)
@click.argument("job", required=False, metavar="[JOBID|RECORD]")
@click.option("--output", type=click.Path(path_type=Path), help="Write to this file, or into this directory.")
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Only the Nth program of the job.")
def command(job: str | None, output: Path | None, step: int | None) -> None:
    """Write a Darshan log of each program of a recorded job, for Darshan's own tools.

    Without JOBID, or with `last`, the last job that was recorded. JOBID is an id, or at least 3 digits
    of its beginning or end. RECORD is the directory of a record, or a file of
    FOREBAY_MPI_STATS. The names of the logs go to standard output.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for path in _export(job, output, step):
        click.echo(path)


def _export(job: str | None, output: Path | None, step: int | None) -> Iterator[Path]:
    """Writes the logs, and yields the name of each as soon as it is there."""
    state = records.state_directory(os.environ)
    (profile,) = sources.open_profiles([] if job is None else [job], state)
    if profile.source != "forebay":
        message = f"{profile.path}: only what Forebay itself recorded is exported"
        raise ProfileError(message, "give the id of a job; `forebay report` reads other sources as well")
    chosen = _chosen(profile, step)
    targets = _targets(profile, chosen, output)
    # The library takes half a second to load: not for an answer that needs none of it.
    from forebay.profiles import darshan_write

    user_id, mounts = Path(profile.path).stat().st_uid, _mounts()
    for program, target in zip(chosen.values(), targets, strict=True):
        darshan_write.write(program, profile.job, user_id, mounts, target, profile.unread)
        yield target


def _chosen(profile: Profile, step: int | None) -> dict[int, Program]:
    """The programs to export by their number, from 1; names the programs that it omits."""
    numbered = dict(enumerate(profile.programs, start=1))
    if step is not None and step not in numbered:
        message = f"{profile.path}: has no step {step}"
        raise ProfileError(message, f"it recorded {len(numbered)} program(s)")
    chosen = {}
    for number, program in numbered.items():
        if step not in (None, number):
            continue
        if program.finished:
            chosen[number] = program
        else:
            name = program.name or "a program"
            click.echo(f"step {number}, {name}, is left out: it ended without MPI_Finalize", err=True)
    if not chosen:
        message = f"{profile.path}: nothing of this job can be exported"
        raise ProfileError(message, "`forebay why` tells what is known of it")
    return chosen


def _targets(profile: Profile, chosen: dict[int, Program], output: Path | None) -> list[Path]:
    if output is None or output.is_dir():
        directory = output or Path()
        return [directory / _log_name(profile, number, program) for number, program in chosen.items()]
    if len(chosen) > 1:
        steps = ", ".join(map(str, list(chosen)[:NAMED_MAX])) + (", ..." if len(chosen) > NAMED_MAX else "")
        message = f"{output}: one file for {len(chosen)} programs"
        raise ProfileError(message, f"choose one with --step ({steps}), or give a directory")
    return [output]


def _log_name(profile: Profile, number: int, program: Program) -> str:
    """As Darshan names its logs: user, executable, job, month, day, seconds of the day."""
    started = time.localtime(program.started_unix_s or profile.job.started_unix_s or 0.0)
    day_s = started.tm_hour * 3600 + started.tm_min * 60 + started.tm_sec
    executable = os.path.basename(program.name or "unknown")[:NAME_CHARACTERS_MAX]
    user = profile.job.user or str(os.getuid())
    job = f"{profile.job.id or 0}-{number}"
    name = f"{user}_{executable}_id{job}_{started.tm_mon}-{started.tm_mday}-{day_s}.darshan"
    return name.replace("/", "_")


def _mounts() -> list[tuple[str, str]]:
    """(path, type) of this machine's mounts, as the kernel writes them: a blank in a path is `\\040`."""
    fields = (line.split(" ") for line in MOUNT_TABLE.read_text(errors="surrogateescape").splitlines())
    mounts = {path: kind for _, path, kind, *_ in fields}
    return list(({"/": "unknown"} | mounts).items())
