"""A file of hints for ROMIO, named in ROMIO_HINTS: `key value` on each line, for all files of the job.

Rank 0 of each file's communicator reads it when the file is opened, so it is in the job's directory,
which all nodes see. Each run writes it again. Hints that the program itself sets take precedence.
"""

from __future__ import annotations

import shlex

from forebay.tune.errors import TuneError
from forebay.tune.script_forms import syntax
from forebay.tune.script_forms.job_lines import Hints, Job, Line, grouped

VARIABLE = "ROMIO_HINTS"
SUFFIX = ".romio_hints"
#: Open MPI's own ompio would take the files otherwise, and ignores hints. 341 is the ROMIO of Open MPI 5.
_PRIORITY = "OMPI_MCA_io_romio341_priority"


def lines(job: Job, hints: Hints, carries: frozenset[str]) -> list[Line]:
    """Raises TuneError if two patterns want different values of one hint."""
    script = job.script
    name = f'"{syntax.submitted_in(script)}"/{shlex.quote(f".{script.path.stem}{SUFFIX}")}'
    arguments = " ".join(shlex.quote(f"{key} {value}") for key, value in _for_all_files(hints).items())
    write = f"printf '%s\\n' {arguments}"
    texts = []
    if job.sets(VARIABLE):  # of two lines for one hint the first counts
        texts = syntax.set_default(script.syntax, VARIABLE, "/dev/null")
        file = '"$ROMIO_HINTS"' if script.syntax == "csh" else '"${ROMIO_HINTS:-/dev/null}"'
        write = f"( {write}; cat {file} )"
    texts += [
        f"{write} > {name}",
        syntax.export(script.syntax, VARIABLE, name),
        syntax.export(script.syntax, _PRIORITY, "100"),
    ]
    return grouped(texts, carries, VARIABLE)


def _for_all_files(hints: Hints) -> dict[str, str]:
    result: dict[str, str] = {}
    for pattern, ours in hints.items():
        for key, value in ours.items():
            if result.setdefault(key, value) != value:
                raise TuneError(
                    f"{key} is {value} for {pattern}, {result[key]} for others: this MPI has one for all",
                    "tune one pattern, or use an MPI with hints for each file (docs/reference/hints.md)",
                )
    return result
