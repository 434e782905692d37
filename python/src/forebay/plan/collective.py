"""Exact counts of system calls behind collective MPI-IO.

With Cray's default alignment (`MPICH_MPIIO_CB_ALIGN=2`) each collective call is cut from its beginning into
pieces of one stripe, and each piece is one system call. KAUST18 prints the counts for BTIO: 6,411 with
stripes of 8 MiB and 51,211 with 1 MiB, of 160 calls of 320 MiB each and 11 independent writes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from forebay.plan.errors import PlanError


class SystemCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What `MPICH_MPIIO_STATS=1` prints for one direction of a file."""

    system_calls: int
    stripe_sized: int
    total_bytes: int

    @property
    def average_bytes(self) -> int:
        """Bytes of a system call, rounded down as Cray prints it."""
        return self.total_bytes // self.system_calls

    @property
    def stripe_sized_percent(self) -> float:
        """Calls of exactly one stripe, of all."""
        return 100.0 * self.stripe_sized / self.system_calls


def collective_calls(ranks: int, calls_per_rank: int) -> int:
    """What Cray prints as collective writes or reads: the calls of all ranks."""
    return ranks * calls_per_rank


def system_calls(
    calls_bytes: Iterable[tuple[int, int]], stripe_bytes: int, *, independent: tuple[int, int] = (0, 0)
) -> SystemCalls:
    """Counts for collective calls, each given as (number of calls, bytes of one call of all ranks together).

    `independent` are (calls, bytes) outside of collective calls, such as a header. Raises PlanError for a
    stripe of no bytes, negative numbers, or no call at all.
    """
    if stripe_bytes < 1:
        raise PlanError(f"a stripe of {stripe_bytes} bytes", "give --stripe-size of at least 1 byte")
    groups = list(calls_bytes)
    if any(count < 0 or size < 0 for count, size in [*groups, independent]):
        raise PlanError("a negative number of calls or bytes", "check the pattern")
    pieces = sum(count * -(-size // stripe_bytes) for count, size in groups)
    whole = sum(count * (size // stripe_bytes) for count, size in groups)
    total = sum(count * size for count, size in groups) + independent[1]
    if pieces + independent[0] == 0:
        raise PlanError("no call moves data", "check the pattern")
    return SystemCalls(system_calls=pieces + independent[0], stripe_sized=whole, total_bytes=total)


def calls_of_average(total_bytes: int, average_bytes: int) -> int:
    """The number of calls behind a printed average, which is rounded down."""
    if average_bytes < 1:
        raise PlanError(f"an average call of {average_bytes} bytes", "give the printed average")
    return total_bytes // average_bytes


def repeated_reads(records: int, record_bytes: int) -> tuple[int, int]:
    """(accesses, bytes of the file) where each of `records` records is read once for every record.

    KAUST18's natural migration: 5,297 records of 17,310,596 bytes, 28,058,209 accesses.
    """
    return records * records, records * record_bytes
