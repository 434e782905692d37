"""The recorded I/O in place of the job: a script that issues the traces of the default run again.

The script is one as the user's, so that all settings are added to it in the same way. Its files are in
directories of its own, in the burst buffer where the job had them there, else in the directory of the runs.
No file of the user's is ever touched.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from forebay.profiles import sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Profile, Program
from forebay.tune.decide.eligibility import mpi_programs
from forebay.tune.errors import TuneError

#: Replay and job differ so much in their I/O time: said to the user.
RESEMBLING_MAX = 1.5
#: Files of the replay lie below directories of this name: in that of the runs, and in the burst buffer.
BELOW = "forebay-replay"
_ELSEWHERE = f"$PWD/{BELOW}/elsewhere"
#: Open MPI refuses more ranks than cores, and to run as root, unless a variable permits it, as for the job.
_LAUNCHING = (
    "export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
    "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
)


class Issued(msgspec.Struct):
    """The line that forebay-replay prints; docs/reference/trace.md."""

    ranks: int
    calls: int
    bytes: int
    skipped: int
    differences: int
    io_s: float
    total_s: float


def script_text(
    profile: Profile,
    directory: Path,
    variables: dict[str, str],
    think: float,
    traces: Sequence[Path] = (),
    exported: Mapping[str, str] | None = None,
) -> str:
    """The text of a script that issues the I/O of the default run's MPI programs again, in their order.

    `directory` is where that run was, `variables` named its namespaces. `traces`: others than its own, one
    for each program. `exported`: what the job's script says to MPI-IO in variables, which is not in a trace.
    TuneError if a program has no trace, or `traces` are of other programs or ranks.
    """
    programs = [program for program in mpi_programs(profile) if program.finished]
    is_own = not traces
    if is_own:
        traces = [_trace_of(program) for program in programs]
    if len(traces) != len(programs):
        raise TuneError(
            f"{len(traces)} trace(s) for {len(programs)} MPI program(s) of the job", "one for each"
        )
    places = {str(directory): f"$PWD/{BELOW}/work"}
    places |= {path.rstrip("/"): f"${{{name}%/}}/{BELOW}" for name, path in sorted(variables.items())}
    steps = []
    for program, trace in zip(programs, traces, strict=True):
        _check(replay_program(program), trace, program)
        there = places if is_own else _places_in(trace, profile, directory, places)
        steps.append(_step(program, trace, there, think))
    own = [f"export {name}={shlex.quote(value)}" for name, value in (exported or {}).items()]
    made = [f'mkdir -p "{target}"' for target in (*places.values(), _ELSEWHERE)]
    return "\n".join(["#!/bin/bash", "set -e", *_LAUNCHING, *own, *made, *steps, ""])


def _places_in(trace: Path, profile: Profile, directory: Path, places: dict[str, str]) -> dict[str, str]:
    """The same places by the names that they had in the run of the trace, which its record tells.

    Namespaces are named by the id of their job.
    """
    try:
        job = sources.open_path(trace.parent).job
    except ProfileError as error:
        raise TuneError(
            f"{trace}: its directory has no record of the run, so the places of its files are unknown",
            "name the trace in the record that `forebay run --trace` made",
        ) from error
    own, other = ((one.id or "").split(".")[0] for one in (profile.job, job))
    names = {was: was.replace(f"/{own}/", f"/{other}/") for was in places}
    names[str(directory)] = job.directory or str(directory)
    return {names[was]: now for was, now in places.items()}


def _step(program: Program, trace: Path, places: dict[str, str], think: float) -> str:
    replayer = replay_program(program)
    words = [launcher(program), "-n", str(program.ranks), str(replayer)]
    options = " ".join(f'--map {shlex.quote(was)}="{now}"' for was, now in places.items())
    own = f'{options} --directory "{_ELSEWHERE}" --overwrite --think {think:g}'
    return f"{shlex.join(words)} {own} {shlex.quote(str(trace))}"


def family(program: Program) -> str:
    """Whose handles its MPI has, as below lib/forebay."""
    return "openmpi" if "open mpi" in (program.mpi or "").lower() else "mpich"


def replay_program(program: Program) -> Path:
    """forebay-replay for the program's MPI. TuneError if it was not built."""
    libraries = os.environ.get("FOREBAY_LIBRARY")
    if not libraries:
        raise TuneError("FOREBAY_LIBRARY does not name Forebay's libraries", "start it as `forebay tune`")
    path = Path(libraries) / family(program) / "forebay-replay"
    if not path.is_file():
        raise TuneError(
            f"{path}: there is no replay for {program.mpi}", "`make build` with that MPI's compiler"
        )
    return path


def launcher(program: Program) -> str:
    """mpiexec of the program's MPI, where several are installed as Debian names them."""
    for name in (f"mpiexec.{family(program)}", "mpiexec"):
        if shutil.which(name):
            return name
    raise TuneError("mpiexec is not in PATH: the replay cannot be started", "load the job's MPI first")


def _trace_of(program: Program) -> Path:
    if program.trace is None or not Path(program.trace).is_dir():
        name = program.name or "a program"
        raise TuneError(f"{name}: the default run left no trace", "begin a new study: --study DIR")
    return Path(program.trace)


def _check(replayer: Path, trace: Path, program: Program) -> None:
    """TuneError if the trace is another program's, or of other ranks."""
    name, ranks = _header(replayer, trace)
    own = program.name or name
    if os.path.basename(name) != os.path.basename(own):
        raise TuneError(f"{trace}: a trace of another program: {name}; the job runs {own}")
    if ranks != program.ranks:
        raise TuneError(f"{trace}: a trace of {ranks} ranks; the job runs {own} with {program.ranks}")


def _header(replayer: Path, trace: Path) -> tuple[str, int]:
    """Program and number of ranks, from the first line of `forebay-replay --print`."""
    words = [str(replayer), "--print", str(trace)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as printing:
        assert printing.stdout is not None and printing.stderr is not None
        line = printing.stdout.readline()
        printing.stdout.close()
        said = printing.stderr.read()
    found = re.fullmatch(r"# (.*), .*, (\d+) ranks?, .*\n", line)
    if found is None:
        raise TuneError(
            f"{trace}: this is no trace: {said.strip().splitlines()[0] if said.strip() else line}"
        )
    return found[1], int(found[2])


def issued(output: str) -> list[Issued]:
    """What the steps of a replay printed, in order."""
    found = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found.append(msgspec.json.decode(line, type=Issued))
            except msgspec.MsgspecError:
                continue  # another program's line
    return found


def refusal(output: str) -> str | None:
    """Why forebay-replay refused the trace, if it did."""
    lines = [line for line in output.splitlines() if line.startswith("forebay-replay: ")]
    return lines[0].removeprefix("forebay-replay: ") if lines else None


def remedy(why: str) -> str:
    """What to do about a replay that failed, by what it said."""
    if "its limit was reached" in why:
        return "FOREBAY_MPI_TRACE_BYTES_MAX allows more for each rank; --study DIR begins a new study"
    return "leave out --replay, with a new --study DIR; docs/reference/trace.md says what a trace lacks"


def resemblance(job_io_s: float, replay_io_s: float) -> str:
    """Both figures, and whether they are near each other."""
    both = f"the job's I/O takes {job_io_s:.2f} s, its replay {replay_io_s:.2f} s"
    ratio = max(job_io_s, replay_io_s) / max(min(job_io_s, replay_io_s), 1e-9)
    if ratio <= RESEMBLING_MAX:
        return both
    return (
        f"{both}: they differ by a factor of {ratio:.1f}, so that settings may act differently on the job; "
        "--think 1 also waits as the job did"
    )
