"""Which form hints for MPI-IO take: that which the job's MPI obeys."""

from __future__ import annotations

import re
from typing import Literal

from forebay.profiles.model import Profile

Form = Literal["cray", "library", "romio-file"]


def choose(profile: Profile) -> Form:
    """The form for the job's MPI.

    Cray's MPI reads MPICH_MPIIO_HINTS itself. Open MPI 5 does not hand hints on to its ROMIO, which
    reads a file of its own (docs/reference/hints.md). All others get them through libforebay_mpi.
    """
    names = [program.mpi for program in profile.programs if program.mpi]
    if profile.source == "cray" or any("CRAY" in name.upper() for name in names):
        return "cray"
    if any(re.search(r"Open MPI v?(?:[5-9]|\d\d)\.", name) for name in names):
        return "romio-file"
    return "library"


def per_file(form: str) -> bool:
    """Can files of one job have different hints?"""
    return form != "romio-file"
