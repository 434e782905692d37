"""What a setting looks at: the job's files by pattern, with the figures that several settings need."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import msgspec

from forebay.advice.file_metrics import FileView
from forebay.profiles.metrics import file_bytes
from forebay.profiles.model import Direction, File, Profile
from forebay.tune.job_script.script import JobScript
from forebay.tune.model import Place

#: File systems that lay files out in stripes on command.
STRIPED = frozenset({"lustre"})
#: File systems without locks, where writing through data sieving loses data (UnifyFS, issue 547).
LOCKLESS = frozenset({"unifyfs"})
#: Bytes moved against those asked for: more are moved by data sieving only. Ours.
SIEVED_RATIO_MIN = 1.25
#: What ROMIO takes if nobody says otherwise (ROMIO Users Guide, section on hints).
ROMIO_DEFAULTS = {
    "cb_buffer_size": "16777216",
    "romio_cb_read": "automatic",
    "romio_cb_write": "automatic",
    "romio_ds_read": "automatic",
    "romio_ds_write": "automatic",
    "romio_no_indep_rw": "false",
    "ind_rd_buffer_size": "4194304",
    "ind_wr_buffer_size": "524288",
}


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Calls in one direction to the files of a pattern; sums over files and ranks."""

    collective: int
    independent: int
    asked_bytes: int
    round_bytes: int  # the most that one collective call moved, all ranks together
    block_bytes: int | None  # what a rank asks for in one call most often
    system_calls: int | None
    system_bytes: int | None
    rmw_calls: int
    aggregators: int | None

    @property
    def is_used(self) -> bool:
        """Did the program move data in this direction?"""
        return self.collective + self.independent > 0 and self.asked_bytes > 0

    @property
    def mean_bytes(self) -> float:
        """Of what a rank asks for in one call."""
        return self.asked_bytes / max(1, self.collective + self.independent)

    @property
    def mean_system_bytes(self) -> float | None:
        """Of a system call."""
        if not self.system_calls or self.system_bytes is None:
            return None
        return self.system_bytes / self.system_calls

    @property
    def is_in_pieces(self) -> bool:
        """Independent calls, each of which falls into several pieces of the file."""
        if not self.independent or self.collective:
            return False
        is_sieved = self.rmw_calls > 0 or (self.system_bytes or 0) > SIEVED_RATIO_MIN * self.asked_bytes
        return is_sieved or (self.system_calls or 0) >= 2 * self.independent


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """The namespace of the job over several nodes, where it has layouts."""

    path: str
    placement: str  # of new files
    stripe_bytes: int
    takes_local: bool  # can each file be stored on the node that creates it?

    def has(self, path: str) -> bool:
        """Is the file in it, or in that of an earlier job?"""
        return re.match(of_any_job(self.path), path) is not None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What each setting knows of the job."""

    profile: Profile
    script: JobScript
    place: Place
    layout_may_change: bool
    stripe_targets: int | None
    namespace: Namespace | None
    head_of: Callable[[str], bytes]  # path -> its first bytes, none where it cannot be read

    @property
    def is_emulated(self) -> bool:
        """Is the file system one of our models?"""
        return self.profile.job.emulated is not None


class Files:
    """The files of one pattern that are worth a look, through MPI-IO; those that take longest first."""

    def __init__(self, pattern: str, views: list[FileView], job: Job) -> None:
        self.pattern = pattern
        self.views = sorted(views, key=lambda view: -(view.seconds or 0.0))
        self.job = job

    @property
    def main(self) -> FileView:
        """The one that takes longest."""
        return self.views[0]

    @cached_property
    def ranks(self) -> int:
        """That opened it, or those of its program."""
        return max((view.ranks or 1 for view in self.views), default=1)

    @cached_property
    def hosts(self) -> int:
        """Nodes with ranks of its program."""
        return max((view.program.hosts or 1 for view in self.views), default=1)

    @cached_property
    def seconds(self) -> float:
        """In it, of the slowest rank."""
        return sum(view.seconds or 0.0 for view in self.views)

    @property
    def is_ompio(self) -> bool:
        """Open MPI's own MPI-IO has it, which hints replace by ROMIO (docs/reference/hints.md)."""
        return any((view.file.opened_by or "").startswith(("mca_fs_", "mca_fbtl_")) for view in self.views)

    @property
    def has_lustre_driver(self) -> bool:
        """ROMIO's driver for Lustre, or Cray's MPI, lays it out and aligns aggregators to its stripes."""
        keys = (self.main.hints.in_force or {}).keys()
        is_cray = "CRAY" in (self.main.program.mpi or "").upper() or self.main.source == "cray"
        is_striped = self.main.file.stripe_bytes is not None and not self.job.is_emulated
        return any(key.startswith("romio_lustre") for key in keys) or (is_cray and is_striped)

    @property
    def bytes(self) -> int:
        """Of the largest of the files."""
        return max((file_bytes(view.file) or 0 for view in self.views), default=0)

    @property
    def stripe_bytes(self) -> int | None:
        """Stripe unit, where one is known."""
        return next((view.file.stripe_bytes for view in self.views if view.file.stripe_bytes), None)

    @property
    def is_locked(self) -> bool:
        """Has its file system locks, as far as is known?"""
        return (self.main.file.file_system or "").lower() not in LOCKLESS

    def default(self, key: str) -> str | None:
        """What the default run had in force; None where it is not known, as with ompio."""
        in_force = self.main.hint(key)
        if in_force is not None or self.is_ompio or not self.is_romio:
            return in_force
        return ROMIO_DEFAULTS.get(key)

    def asked(self, key: str) -> str | None:
        """What the job itself asks for, for the file that takes longest."""
        hints = self.main.hints
        return hints.environment.get(key, hints.program.get(key))

    @property
    def is_romio(self) -> bool:
        """Is it known that ROMIO, or Cray's MPI, had it?"""
        by, mpi = self.main.file.opened_by or "", self.main.program.mpi or ""
        return "romio" in by or "mpich" in by or "MPICH" in mpi.upper()

    def starts_with(self, *magic: bytes) -> bool:
        """Do the first bytes of one of the files say so?"""
        return any(self.job.head_of(view.file.path).startswith(magic) for view in self.views)

    def ends_with(self, *extensions: str) -> bool:
        """Does the name of one of the files?"""
        return any(view.file.path.endswith(extensions) for view in self.views)

    def _sum_calls(self, direction: Direction) -> Calls:
        """Calls in this direction."""
        parts = [_calls(view, direction) for view in self.views]
        return Calls(
            collective=sum(part.collective for part in parts),
            independent=sum(part.independent for part in parts),
            asked_bytes=sum(part.asked_bytes for part in parts),
            round_bytes=max(part.round_bytes for part in parts),
            block_bytes=max(part.block_bytes or 0 for part in parts) or None,
            system_calls=_sum([part.system_calls for part in parts]),
            system_bytes=_sum([part.system_bytes for part in parts]),
            rmw_calls=sum(part.rmw_calls for part in parts),
            aggregators=max((part.aggregators for part in parts if part.aggregators), default=None),
        )

    @cached_property
    def write(self) -> Calls:
        """What was written."""
        return self._sum_calls("write")

    @cached_property
    def read(self) -> Calls:
        """What was read."""
        return self._sum_calls("read")

    def calls_in(self, direction: Direction) -> Calls:
        """One of the two."""
        return self.write if direction == "write" else self.read

    @property
    def is_collective(self) -> bool:
        """Are there collective calls that move data?"""
        return any(calls.collective > 0 and calls.is_used for calls in (self.write, self.read))


def _calls(view: FileView, direction: Direction) -> Calls:
    asked, system, ranks = view.asked(direction), view.system(direction), view.ranks or 1
    collective = (asked.collective or 0) + (asked.split or 0)
    independent = (asked.independent or 0) + (asked.nonblocking or 0)
    number = max(1, collective + independent)
    #: what only a rank or two asked for, as a header, says nothing of the rounds
    common = [size for size, calls in asked.common_sizes if calls >= ranks]
    largest = max([(asked.bytes or 0) / number, *common])
    collected = view.file.collective
    return Calls(
        collective=collective,
        independent=independent,
        asked_bytes=asked.bytes or 0,
        round_bytes=int(largest * ranks) if collective else 0,
        block_bytes=common[0] if common else None,
        system_calls=system.calls,
        system_bytes=system.bytes,
        rmw_calls=(collected.rmw_calls or 0) if collected and direction == "write" else 0,
        aggregators=view.aggregators(direction),
    )


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def of_any_job(path: str) -> str:
    """A pattern of this directory of the burst buffer: a profile may be of an earlier job.

    On several nodes a random part follows the number of the job.
    """
    escaped = re.escape(path.rstrip("/") + "/")
    return re.sub(r"\d{13,}(\\-[0-9a-f]{12})?", r"\\d+(?:-[0-9a-f]{12})?", escaped)


def is_created(file: File) -> bool:
    """Is it written through any layer? The layout of a file that is only read stays."""
    return any((layer.write.bytes or 0) > 0 for layer in file.layers.values())


def head_of(path: str) -> bytes:
    """The first bytes of a file; none where it is not there or not to be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(8)
    except (OSError, ValueError):
        return b""
