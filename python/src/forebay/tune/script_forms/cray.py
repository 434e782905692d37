"""Cray's MPI reads MPICH_MPIIO_HINTS by itself. So does libforebay_mpi, for others."""

from __future__ import annotations

from forebay.tune.script_forms import syntax
from forebay.tune.script_forms.job_lines import Hints, Job, Line, grouped
from forebay.tune.script_forms.merging import merged, value_of

VARIABLE = "MPICH_MPIIO_HINTS"
_WHY = "# cb_config_list: without it ROMIO takes one process of a node as aggregator, whatever cb_nodes says."


def lines(job: Job, hints: Hints, carries: frozenset[str]) -> list[Line]:
    """Patterns of ours come first, the user's behind them."""
    value, shell = value_of(merged(hints, job)), job.script.syntax
    # What the shell expands in the user's hints, it expands in ours.
    word = syntax.quoted(value, expands="$" in value or "`" in value)
    if job.sets(VARIABLE):
        texts = syntax.prepend(shell, VARIABLE, word, ",")
    else:
        texts = [syntax.export(shell, VARIABLE, word)]
    why = [_WHY] if "cb_config_list" in value else []
    return grouped([*why, *texts], carries, VARIABLE)
