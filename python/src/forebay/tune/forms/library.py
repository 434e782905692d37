"""libforebay_mpi brings MPICH_MPIIO_HINTS to other MPIs. `forebay run` preloads it; else the script does."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from forebay.tune.errors import TuneError
from forebay.tune.forms import cray, syntax
from forebay.tune.forms._base import Hints, Job, Line
from forebay.tune.script import program

NAME = "libforebay_mpi.so"


def lines(job: Job, hints: Hints, carries: frozenset[str]) -> list[Line]:
    """The variable, and the library in front of all that the script starts."""
    return [*cray.lines(job, hints, carries), *preload(job)]


def preload(job: Job) -> list[Line]:
    """The library in front of all that the script starts, on all nodes."""
    return [Line(text=text) for text in (*_preload(job), *_forwarding(job))]


def library(mpi: str | None) -> Path:
    """The library for this MPI; one for another would exchange itself, at each start.

    Raises TuneError if it is not installed, or if no LD_PRELOAD could name it.
    """
    beside = Path(program()).resolve().parent.parent / "lib" / "forebay"
    folder = Path(os.environ.get("FOREBAY_LIBRARY") or beside)
    path = folder / ("openmpi" if _is_open_mpi(mpi) else "mpich") / NAME
    if not path.is_file():
        raise TuneError(f"{path} is missing, which brings hints to this MPI", "run make, or make install")
    if set(str(path)) & set(" :\t\n"):
        raise TuneError(
            f"{path}: LD_PRELOAD cannot name a file with a blank or a colon", "install Forebay elsewhere"
        )
    return path


def _preload(job: Job) -> list[str]:
    path, shell = library(job.machine.mpi), job.script.syntax
    if shell == "csh":
        word = f'{shlex.quote(f"{path}:")}"$LD_PRELOAD"'
        export = syntax.export(shell, "LD_PRELOAD", word)
        return [*syntax.unset_is(shell, "LD_PRELOAD", ""), f'if ("$LD_PRELOAD" !~ *{NAME}*) {export}']
    export = syntax.export(shell, "LD_PRELOAD", f'{shlex.quote(str(path))}"${{LD_PRELOAD:+:$LD_PRELOAD}}"')
    return [f'case "${{LD_PRELOAD:-}}" in *{NAME}*) ;; *) {export} ;; esac']


def _forwarding(job: Job) -> list[str]:
    """Open MPI's mpiexec takes only its own variables to other nodes; all ranks must have the library."""
    if job.machine.nodes < 2 or not _is_open_mpi(job.machine.mpi):
        return []
    return syntax.behind(job.script.syntax, "OMPI_MCA_mca_base_env_list", f"LD_PRELOAD;{cray.VARIABLE}", ";")


def _is_open_mpi(mpi: str | None) -> bool:
    return "open mpi" in (mpi or "").lower()
