"""PNETCDF_HINTS: `key=value;key=value`, for all files of the job. Of two values for a key the last counts."""

from __future__ import annotations

import shlex

from forebay.tune.errors import TuneError
from forebay.tune.script_forms import syntax
from forebay.tune.script_forms.job_lines import Job, Line, grouped, is_open_mpi

VARIABLE = "PNETCDF_HINTS"


def lines(job: Job, settings: dict[str, str], carries: frozenset[str]) -> list[Line]:
    """Ours stand behind the user's. Open MPI takes no `;` to other nodes (forwarding.py)."""
    if len(settings) > 1 and job.machine.nodes > 1 and is_open_mpi(job.machine.mpi):
        raise TuneError(
            f"Open MPI cannot take {' and '.join(settings)} to other nodes together", "set one of them alone"
        )
    value, shell = ";".join(f"{key}={value}" for key, value in settings.items()), job.script.syntax
    if job.sets(VARIABLE):
        texts = syntax.append(shell, VARIABLE, value, ";")
    else:
        texts = [syntax.export(shell, VARIABLE, shlex.quote(value))]
    return grouped(texts, carries, VARIABLE)
