"""lazy_io: nodes see each other's writes after sync and close only, where the namespace offers it.

A key of libforebay_mpi in MPICH_MPIIO_HINTS (docs/reference/mpi.md).
"""

from __future__ import annotations

from forebay.quantities import count
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files
from forebay.tune.settings.setting import Setting


class LazyIo(Setting):
    """On by default; without it each write goes to the servers at once."""

    name = "lazy_io"
    source = "MPI-4.1, 14.6.1; the CephFS documents, LazyIO"
    is_in_calls = False

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where a mount took it, or could."""
        lazy = sum(view.file.lazy_opens or 0 for view in files.views)
        if files.asked(self.name) is None and not lazy:
            return None
        default = "enable" if lazy else "disable"
        cause = f"{count(lazy)} open(s) were lazy" if lazy else "the job switches it off"
        reason = f"{cause}: small writes of several nodes are buffered, and each lock writes back"
        return self.parameter(files, ["enable", "disable"], default=default, ordered=False, reason=reason)
