"""The recorded I/O in place of the job: a script that issues the traces of the default run again.

The script is one as the user's, so that all settings are added to it in the same way. Files of the runs'
directory and of the burst buffer lie where the job had them, all others below a directory of the replay's
own: no file of the user's is ever touched.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forebay.profiles.model import Profile, Program
from forebay.tune.errors import TuneError
from forebay.tune.worth import mpi_programs

#: Replay and job differ so much in their I/O time: said to the user.
RESEMBLING_MAX = 1.5
#: What lies neither in the runs' directory nor in the burst buffer lies below this one, in the former.
ELSEWHERE = "forebay-replay"
#: Open MPI refuses more ranks than cores, and to run as root, unless told that it may, as the job was.
_LAUNCHING = (
    "export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
    "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
)


class Issued(msgspec.Struct):
    """The line that forebay-replay prints; docs/trace.md."""

    ranks: int
    calls: int
    bytes: int
    skipped: int
    differences: int
    io_s: float
    total_s: float


def script_text(
    profile: Profile, directory: Path, variables: dict[str, str], think: float, traces: Sequence[Path] = ()
) -> str:
    """The text of a script that issues the I/O of the default run's MPI programs again, in their order.

    `directory` is where that run was, `variables` named its namespaces. `traces`: others than its own, one
    for each program. TuneError if a program has no trace, or `traces` are of other programs or ranks.
    """
    programs = [program for program in mpi_programs(profile) if program.finished]
    if not traces:
        traces = [_trace_of(program) for program in programs]
    if len(traces) != len(programs):
        raise TuneError(
            f"{len(traces)} trace(s) for {len(programs)} MPI program(s) of the job", "one for each"
        )
    maps = [f"{shlex.quote(str(directory))}=$PWD"]
    maps += [f'{shlex.quote(path.rstrip("/"))}="${{{name}%/}}"' for name, path in sorted(variables.items())]
    steps = [_step(one, trace, maps, think) for one, trace in zip(programs, traces, strict=True)]
    return "\n".join(["#!/bin/bash", "set -e", *_LAUNCHING, f"mkdir {ELSEWHERE}", *steps, ""])


def _step(program: Program, trace: Path, maps: list[str], think: float) -> str:
    replayer = replay_program(program)
    _check(replayer, trace, program)
    words = [launcher(program), "-n", str(program.ranks), str(replayer)]
    options = " ".join(f"--map {one}" for one in maps)
    own = f'{options} --directory "$PWD/{ELSEWHERE}" --overwrite --think {think:g}'
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
    """What the steps of a replay told, in order."""
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
