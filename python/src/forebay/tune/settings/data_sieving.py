"""romio_ds_write, romio_ds_read, and the buffers of data sieving: how pieces of one rank are moved.

A large region is read, changed and written back, or only read, in place of each piece by itself.
"""

from __future__ import annotations

from forebay.profiles.model import Direction
from forebay.quantities import count, size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Calls, Files
from forebay.tune.settings.setting import KIB, MIB, Setting, SettingContext

BUFFERS_BYTES = {
    "write": (128 * KIB, 512 * KIB, 2 * MIB, 8 * MIB),
    "read": (MIB, 4 * MIB, 16 * MIB),
}


class DataSieving(Setting):
    """It acts on independent calls that fall into pieces, and on collective ones that are not buffered."""

    source = "ROMIO Users Guide; Cray's course on parallel I/O (2012); UnifyFS, issue 547"

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.name = f"romio_ds_{direction}"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where a rank's calls may fall into pieces."""
        calls = files.calls_in(self.direction)
        if not calls.is_used:
            return None
        if not calls.collective and not calls.is_in_pieces:
            return self.refusal(files, _whole(calls, self.direction))
        values, default = ["disable"], files.default(self.name)
        if files.is_ompio and default is None and calls.is_in_pieces:
            values.append("enable")
        if not files.is_locked:
            values = ["disable"]
        return self.parameter(
            files, values, default=default, ordered=False, reason=self._reason(files, calls)
        )

    def _reason(self, files: Files, calls: Calls) -> str:
        if not files.is_locked:
            return "its file system has no locks, which writing through data sieving needs"
        if calls.rmw_calls:
            return f"{count(calls.rmw_calls)} reads were made in order to write"
        if calls.is_in_pieces:
            return (
                f"{count(calls.independent)} independent calls of {size(calls.mean_bytes)} fell into "
                f"{count(calls.system_calls or 0)} system calls of {size(calls.mean_system_bytes or 0)}"
            )
        return "it acts where collective buffering is off, on calls that fall into pieces"

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """Buffered collective calls do not use it."""
        return context.offers(f"romio_cb_{self.direction}") and _is_buffered(self.direction, context)


class SievingBuffer(Setting):
    """How large that region is."""

    source = "ROMIO Users Guide"

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.name = {"write": "ind_wr_buffer_size", "read": "ind_rd_buffer_size"}[direction]

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where independent calls fall into pieces."""
        calls = files.calls_in(self.direction)
        if not calls.is_used or calls.collective:
            return None
        if not calls.is_in_pieces:
            return self.refusal(files, _whole(calls, self.direction))
        default = files.default(self.name)
        return self.parameter(
            files,
            BUFFERS_BYTES[self.direction],
            default=default,
            ordered=True,
            reason=f"independent calls of {size(calls.mean_bytes)} fall into pieces; it is moved at once",
        )

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """Without data sieving there is none."""
        return context.value(f"romio_ds_{self.direction}") == "disable"


def _is_buffered(direction: Direction, context: SettingContext) -> bool:
    return context.value("romio_no_indep_rw") == "true" or context.value(f"romio_cb_{direction}") != "disable"


def _whole(calls: Calls, direction: Direction) -> str:
    system = "" if calls.system_calls is None else f" ended as {count(calls.system_calls)} system calls:"
    return (
        f"{count(calls.independent)} independent {direction}s of {size(calls.mean_bytes)} each{system} "
        "each is one piece, and no hint joins pieces of several calls"
    )
