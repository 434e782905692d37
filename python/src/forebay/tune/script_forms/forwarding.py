"""Variables on other nodes. Open MPI's mpiexec takes only its own there; all other launchers take all.

Where a rank lacks libforebay_mpi the others would wait for it, and PnetCDF's ranks must have the same hints.
Measured with Open MPI 4.1.4 and 5.0.11: a variable that is named without its value arrives only if the value
has no `=`, and a `;` ends any value. Version 4.1.4 does not start if -x is given as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from forebay.tune.errors import TuneError
from forebay.tune.script_forms import syntax
from forebay.tune.script_forms.job_lines import Job, Line, is_open_mpi

_VARIABLE = "OMPI_MCA_mca_base_env_list"


def lines(job: Job, variables: Iterable[str]) -> list[Line]:
    """Raises TuneError if a launch line of the script would not start with it."""
    names = [name for name in dict.fromkeys(variables) if not name.startswith("OMPI_")]
    if job.machine.nodes < 2 or not is_open_mpi(job.machine.mpi) or not names:
        return []
    for launch in job.script.launches:
        if "-x" in launch.options:
            raise TuneError(
                f"{job.script.path}: line {launch.line} hands variables to other nodes by -x, others are not",
                f"put `export {_VARIABLE}='NAME=VALUE;NAME=VALUE'` in place of -x NAME -x NAME",
            )
    assignments = ";".join(f"{name}=${name}" for name in names)
    if job.script.syntax == "csh":
        texts = [
            *syntax.set_default("csh", _VARIABLE, ""),
            f'setenv {_VARIABLE} "${_VARIABLE};{assignments}"',
        ]
    else:
        texts = [f'export {_VARIABLE}="${{{_VARIABLE}:+${_VARIABLE};}}{assignments}"']
    return [Line(text=text) for text in texts]
