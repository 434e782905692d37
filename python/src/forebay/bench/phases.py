"""The phases of IO500 in their order, and which of them count for which mean.

Source: the phase table of the IO500 benchmark (github.com/IO500/io500, 2026).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Bytes of one transfer of ior-easy and of ior-hard, and of a file of mdtest-hard.
EASY_TRANSFER_BYTES = 2 << 20
HARD_TRANSFER_BYTES = 47008
ITEM_BYTES = 3901
#: How long the phases that write must write in an official run.
OFFICIAL_STONEWALL_S = 300

Group = Literal["bandwidth", "metadata"]


class Phase(NamedTuple):
    """A phase; `group` is the mean that its score is part of, None for one without a score."""

    name: str
    group: Group | None
    reads: str | None = None  # the phase whose files it uses

    @property
    def unit(self) -> str:
        """Of its score: of ior GiB/s, of all others thousands of operations in a second."""
        return "GiB/s" if self.name.startswith("i") else "kIOPS"

    @property
    def writes(self) -> bool:
        """Whether a stonewall ends it, which makes the amount of data a result."""
        return self.name.endswith("-write")


PHASES = (
    Phase("ior-easy-write", "bandwidth"),
    Phase("mdtest-easy-write", "metadata"),
    Phase("timestamp", None),
    Phase("ior-hard-write", "bandwidth"),
    Phase("mdtest-hard-write", "metadata"),
    Phase("find", "metadata"),
    Phase("ior-easy-read", "bandwidth", "ior-easy-write"),
    Phase("mdtest-easy-stat", "metadata", "mdtest-easy-write"),
    Phase("ior-hard-read", "bandwidth", "ior-hard-write"),
    Phase("mdtest-hard-stat", "metadata", "mdtest-hard-write"),
    Phase("mdtest-easy-delete", "metadata", "mdtest-easy-write"),
    Phase("mdtest-hard-read", "metadata", "mdtest-hard-write"),
    Phase("mdtest-hard-delete", "metadata", "mdtest-hard-write"),
    Phase("ior-rnd4K-easy-read", None, "ior-easy-write"),
)
FOLDERS = ("ior-easy", "ior-hard", "mdtest-easy", "mdtest-hard")
#: The reference of the phase find; `timestamp` makes it.
TIMESTAMP_FILE = "timestampfile"
