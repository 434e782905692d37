"""How the ranks of a phase are started: with which launcher, how many, and on which nodes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec

from forebay.bench.errors import BenchError

#: Without other words of the user, a node has at most so many ranks.
RANKS_ON_NODE_MAX = 16
#: Open MPI refuses more ranks than cores, and to run as root, unless a variable permits it.
LAUNCHING = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
_FAMILIES = ("openmpi", "mpich")
#: Variables with the number of tasks of a scheduler's job.
_TASKS = ("SLURM_NTASKS", "LSB_DJOB_NUMPROC", "FLUX_JOB_SIZE", "PBS_NP")
_JOBS = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID")


class Launch(msgspec.Struct, frozen=True):
    """Words before a program, and Forebay's own program for the MPI that they start."""

    words: tuple[str, ...]
    ranks: int
    own_program: str

    def command(self, *program: str) -> list[str]:
        """The whole command line."""
        return [*self.words, *program]


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says of ranks and nodes. None or empty: nothing."""

    ranks: int | None = None  # of all nodes together
    nodes: tuple[str, ...] = ()
    hostfile: Path | None = None
    launcher: str | None = None  # words, in place of mpiexec


def choose(request: LaunchRequest) -> Launch:
    """The launch of a run. Raises BenchError."""
    nodes = _nodes(request)
    ranks = request.ranks or _default_ranks(len(nodes))
    if nodes and ranks % len(nodes):
        raise BenchError(
            f"{ranks} ranks do not spread evenly over {len(nodes)} nodes", "give a multiple with --ranks"
        )
    words, family = _launcher(request.launcher)
    placed = _placed(words, nodes, ranks) if nodes else []
    return Launch((*words, *placed, "-n", str(ranks)), ranks, str(_own_program(family)))


def _nodes(request: LaunchRequest) -> list[str]:
    if request.nodes and request.hostfile:
        raise BenchError("--nodes and --hostfile both name nodes", "give one of them")
    names = [name.strip() for name in request.nodes]
    if request.hostfile:
        try:
            lines = request.hostfile.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BenchError(
                f"{request.hostfile}: cannot be read: {error}", "give one node a line"
            ) from error
        # Slots and the like may follow a name.
        names = [words[0] for line in lines if (words := line.partition("#")[0].split())]
        if not names:
            raise BenchError(f"{request.hostfile} names no node", "give one node a line")
    for name in names:
        # It becomes a part of a list, or an option, of the launcher.
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise BenchError(f"{name!r} is no name of a node", "give names as n1,n2")
    return list(dict.fromkeys(names))


def _default_ranks(nodes: int) -> int:
    """The tasks of the scheduler's job, else one for each core of this node, on each node."""
    for name in _TASKS:
        value = os.environ.get(name, "")
        if not nodes and value.isdigit() and int(value) > 0:
            return int(value)
    cores = len(os.sched_getaffinity(0))
    return min(cores, RANKS_ON_NODE_MAX) * max(1, nodes)


def _launcher(text: str | None) -> tuple[list[str], str]:
    """Words, and the family of MPI that they start."""
    if text is not None:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise BenchError(f"--launcher {text!r}: {error}", "close the quote") from error
        if not words or shutil.which(words[0]) is None:
            raise BenchError(f"--launcher {text!r}: no such program", "name one that is in PATH")
        return words, _family(words[0]) or _family("mpiexec") or _built_family()
    names = ("mpiexec", *(f"mpiexec.{family}" for family in _FAMILIES), "mpirun")
    known = [(name, family) for name in names if (family := _family(name))]
    for name, family in known:
        if _own_path(family).is_file():
            return [name], family
    if known:
        return [known[0][0]], known[0][1]
    if shutil.which("srun") and any(name in os.environ for name in _JOBS):
        return ["srun"], _built_family()
    raise BenchError(
        "neither mpiexec nor, in a job of Slurm, srun is in PATH",
        "load an MPI, or name a launcher with --launcher",
    )


def _family(name: str) -> str | None:
    """Which MPI an mpiexec is of; None if there is none of this name, or it is no mpiexec."""
    if shutil.which(name) is None:
        return None
    try:
        done = subprocess.run(
            [name, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout + done.stderr
    if re.search(r"Open ?MPI|OpenRTE|PRTE|PRRTE", said):
        return "openmpi"
    return "mpich" if re.search(r"HYDRA|MPICH|Intel\(R\) MPI", said) else None


def _own_path(family: str) -> Path:
    libraries = os.environ.get("FOREBAY_LIBRARY")
    if not libraries:
        raise BenchError("FOREBAY_LIBRARY does not name Forebay's libraries", "start it as `forebay bench`")
    return Path(libraries) / family / "forebay-io500"


def _built_family() -> str:
    """The first for which there is a program: a launcher that is no mpiexec does not say its MPI."""
    return next((family for family in _FAMILIES if _own_path(family).is_file()), _FAMILIES[0])


def _own_program(family: str) -> Path:
    path = _own_path(family)
    if not path.is_file():
        raise BenchError(f"{path}: not built for this MPI", "`make build` with that MPI's compiler")
    return path


def _placed(words: list[str], nodes: list[str], ranks: int) -> list[str]:
    """Options that place ranks on nodes, the same number on each, one node after the other."""
    each = ranks // len(nodes)
    name = os.path.basename(words[0])
    if name == "srun":
        return [f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}", f"--ntasks-per-node={each}"]
    if name.startswith(("mpiexec", "mpirun")):
        return [
            "-host" if _family(words[0]) == "openmpi" else "-hosts",
            ",".join(f"{node}:{each}" for node in nodes),
        ]
    raise BenchError(
        f"{name}: Forebay does not know how it takes nodes", "name the nodes in --launcher itself"
    )
