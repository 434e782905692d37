"""What a job does with its files, and the settings that it does it with."""

from __future__ import annotations

from typing import Literal

import msgspec

from forebay.plan import striping
from forebay.plan.errors import PlanError
from forebay.plan.units import size_text

Direction = Literal["write", "read"]
Access = Literal["serial", "file-per-process", "independent", "collective"]

#: ROMIO's and Cray's default of cb_buffer_size, as Cray prints it (CRAY12).
BUFFER_BYTES = 16 << 20
#: ROMIO's default of ind_wr_buffer_size (CRAY12).
SIEVE_BYTES = 512 << 10


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Collective calls of one size."""

    count: int  # each rank makes so many
    total_bytes: float  # of one call, of all ranks together


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """The I/O of one phase: one file, or files that are alike."""

    name: str = "pattern"
    direction: Direction = "write"
    access: Access
    ranks: int
    nodes: int
    total_bytes: float  # of all ranks and calls
    transfer_bytes: float  # one request of a rank, contiguous in the file
    calls: tuple[Calls, ...] = ()  # collective; empty: one call of each rank for each of its transfers
    segment_bytes: float | None = None  # collective: contiguous piece of a rank; None: as transfer_bytes
    is_replicated: bool = False  # collective read: each rank needs all bytes of a call
    is_random: bool = False  # requests at random offsets
    is_interleaved: bool = False  # neighbouring requests in the file are of different ranks
    files: int = 1  # file per process: of all ranks

    def __post_init__(self) -> None:
        striping.check_ranks(self.ranks, self.nodes)
        for name in ("total_bytes", "transfer_bytes"):
            if not 0 < getattr(self, name) < float("inf"):
                raise PlanError(
                    f"{self.name}: {name} is {getattr(self, name)}", "give --size and --transfer above 0"
                )
        if self.transfer_bytes > self.total_bytes:
            raise PlanError(
                f"{self.name}: one transfer of {size_text(self.transfer_bytes)} is more than the "
                f"{size_text(self.total_bytes)} of all",
                "give a smaller --transfer",
            )
        if any(one.count < 1 or one.total_bytes < 1 for one in self.calls):
            raise PlanError(f"{self.name}: a collective call of less than a byte", "give fewer --calls")
        if self.files < 1:
            raise PlanError(f"{self.name}: {self.files} files", "give --files of at least 1")

    @property
    def writers(self) -> int:
        """Processes that move data by themselves: a file of its own has one at a time."""
        if self.access == "serial":
            return 1
        return min(self.ranks, self.files) if self.access == "file-per-process" else self.ranks

    @property
    def collective_calls(self) -> tuple[Calls, ...]:
        """The collective calls; by default, each rank moves one transfer in each."""
        if self.calls:
            return self.calls
        one = min(self.total_bytes, self.transfer_bytes * self.ranks)
        count = max(1, round(self.total_bytes / one))
        return (Calls(count=count, total_bytes=self.total_bytes / count),)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the file is laid out and written."""

    servers: int  # that hold the data: OSTs, DataWarp nodes, or nodes with local storage
    stripe_bytes: int
    stripe_count: int | None = None  # of one file that is on part of the servers; None: a file is on all
    aggregators: int = 1  # collective
    buffer_bytes: int = BUFFER_BYTES
    cb_align: Literal[0, 1, 2] = 2  # MPICH_MPIIO_CB_ALIGN
    data_sieving: bool = False  # independent writes that are not contiguous
    jobs: int = 1  # that write to the same servers at the same time

    def __post_init__(self) -> None:
        for name in ("servers", "stripe_bytes", "aggregators", "buffer_bytes", "jobs"):
            if getattr(self, name) < 1:
                raise PlanError(f"{name} is {getattr(self, name)}", "give at least 1")
        if self.stripe_count is not None and self.stripe_count < 1:
            raise PlanError(f"stripe_count is {self.stripe_count}", "give at least 1")
        if self.cb_align not in (0, 1, 2):
            raise PlanError(f"MPICH_MPIIO_CB_ALIGN is {self.cb_align}", "it is 0, 1 or 2")
