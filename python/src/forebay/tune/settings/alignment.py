"""Alignment by libraries above MPI-IO: nc_var_align_size and nc_header_align_size of PnetCDF, hdf5_alignment.

They change the layout of data in the file, so its bytes differ from those of the default run. They are tried
only if another check judges the output. `hdf5_alignment` is a key of libforebay_mpi in MPICH_MPIIO_HINTS
(docs/reference/hints.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from forebay.profiles.model import File
from forebay.quantities import size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files, Job
from forebay.tune.settings.setting import KIB, MIB, Setting

LAYOUT_STAYS = (
    "it changes the layout of data in the file, so its bytes cannot be compared with the default's: "
    "give --check COMMAND, which judges the output"
)
#: CDF-1, CDF-2, CDF-5.
NETCDF_MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
#: Each variable, or dataset, begins on a border: that leaves at most so many times its size unused. Ours.
WASTE_MAX = 4


def is_netcdf(files: Files) -> bool:
    """Is it PnetCDF's? By what the file begins with, else by its name."""
    return files.starts_with(*NETCDF_MAGIC) or files.ends_with(".nc", ".cdf")


def is_hdf5(files: Files) -> bool:
    """Is it HDF5's? By what the file begins with, else by its name."""
    return files.starts_with(HDF5_MAGIC) or files.ends_with(".h5", ".hdf5")


def _borders(files: Files, most_bytes: int) -> list[int]:
    """The file's stripe unit, else 1 MiB, and 64 KiB; none that would leave most of the file empty."""
    return [one for one in sorted({64 * KIB, files.stripe_bytes or MIB}) if one <= most_bytes]


class NcVarAlign(Setting):
    """Where variables of fixed size begin, in all of PnetCDF's files."""

    name = "nc_var_align_size"
    source = "OLCF's talk on Summit (2018); PnetCDF's documentation"

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """Where PnetCDF writes a file."""
        written = [files for files in patterns if files.write.is_used and is_netcdf(files)]
        if not written:
            return None
        if not job.layout_may_change:
            return self.refusal(None, LAYOUT_STAYS)
        main = max(written, key=lambda files: files.seconds)
        variable_bytes = main.write.round_bytes
        values = self.values(main, variable_bytes)
        if not values:
            return self.refusal(None, self.waste(main, variable_bytes))
        return self.parameter(
            None,
            values,
            default=None,
            ordered=True,
            reason=f"PnetCDF writes {main.pattern}, in which variables begin at multiples of 512 B by "
            f"default; about {size(variable_bytes)} are written at once",
        )

    def values(self, main: Files, variable_bytes: int) -> list[int]:
        """Borders."""
        return _borders(main, WASTE_MAX * variable_bytes)

    def waste(self, main: Files, variable_bytes: int) -> str:
        """Why there are none."""
        return f"variables of {main.pattern} are about {size(variable_bytes)}: borders would waste space"


class NcHeaderAlign(NcVarAlign):
    """Where the data begin behind the header."""

    name = "nc_header_align_size"

    def values(self, main: Files, variable_bytes: int) -> list[int]:
        """The header comes once, so that the file may be small against it."""
        return _borders(main, main.bytes // WASTE_MAX)[-1:]

    def waste(self, main: Files, variable_bytes: int) -> str:
        """Why there are none."""
        return f"{main.pattern} is {size(main.bytes)} large: the border would waste space"


class Hdf5Alignment(Setting):
    """Where datasets and chunks begin."""

    name = "hdf5_alignment"
    source = "HDF5's H5Pset_alignment; Behzad and others, SC13"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where HDF5 writes the file."""
        if not files.write.is_used or not is_hdf5(files):
            return None
        if not files.job.layout_may_change:
            return self.refusal(files, LAYOUT_STAYS)
        block_bytes = max(files.write.round_bytes, (files.write.block_bytes or 0) * files.ranks)
        values = _borders(files, WASTE_MAX * block_bytes)
        if not values:
            return self.refusal(files, f"datasets are about {size(block_bytes)}: borders would waste space")
        return self.parameter(
            files,
            values,
            default=None,
            ordered=True,
            reason=f"HDF5 places datasets anywhere by default; about {size(block_bytes)} are written at once",
        )
