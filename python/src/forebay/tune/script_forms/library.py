"""libforebay_mpi brings MPICH_MPIIO_HINTS to other MPIs. `forebay run` preloads it; else the script does."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from forebay import series_client
from forebay.tune.errors import TuneError
from forebay.tune.script_forms import cray, syntax
from forebay.tune.script_forms.job_lines import Hints, Job, Line, is_open_mpi

NAME = "libforebay_mpi.so"
PRELOAD = "LD_PRELOAD"
_WHY = "# This library hands the hints to the MPI. forebay run loads it by itself; a Cray needs none."


def lines(job: Job, hints: Hints, carries: frozenset[str]) -> list[Line]:
    """The variable, and the library in front of all that the script starts."""
    return [*cray.lines(job, hints, carries), *preload(job)]


def preload(job: Job) -> list[Line]:
    """The library in front of all that the script starts."""
    return [Line(text=text, variable=PRELOAD) for text in _preload(job)]


def library(mpi: str | None) -> Path:
    """The library for this MPI; one for another would exchange itself, at each start.

    Raises TuneError if it is not installed, or if no LD_PRELOAD could name it.
    """
    installed = series_client.find_calling_forebay().resolve().parent.parent / "lib" / "forebay"
    folder = Path(os.environ.get("FOREBAY_LIBRARY") or installed)
    path = folder / ("openmpi" if is_open_mpi(mpi) else "mpich") / NAME
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
        export = syntax.export(shell, PRELOAD, word)
        return [_WHY, *syntax.set_default(shell, PRELOAD, ""), f'if ("$LD_PRELOAD" !~ *{NAME}*) {export}']
    export = syntax.export(shell, PRELOAD, f'{shlex.quote(str(path))}"${{LD_PRELOAD:+:$LD_PRELOAD}}"')
    return [_WHY, 'case "${LD_PRELOAD:-}" in', f"  *{NAME}*) ;;", f"  *) {export} ;;", "esac"]
