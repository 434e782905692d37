"""cb_buffer_size: how much an aggregator collects before it writes."""

from __future__ import annotations

from forebay.quantities import size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files
from forebay.tune.settings.setting import MIB, Setting, SettingContext, positive

SIZES_BYTES = (MIB, 4 * MIB, 16 * MIB, 64 * MIB)


class CbBufferSize(Setting):
    """A smaller one begins to write earlier and stays in the cache, a larger one makes larger calls."""

    name = "cb_buffer_size"
    source = "ROMIO Users Guide; KAUST's burst buffer talk (2018); measured (docs/reference/settings.md)"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where a collective call moves more than the smallest buffer holds."""
        if not files.is_collective:
            return None
        if files.has_lustre_driver:
            return self.refusal(
                files,
                "ROMIO's driver for Lustre takes the stripe unit, whatever is asked for (MPICH, issue 7935)",
            )
        moved_bytes = max(files.write.round_bytes, files.read.round_bytes)
        default = files.default(self.name)
        now_bytes = positive(default)
        values = sizes(moved_bytes, now_bytes or 16 * MIB)
        if not values:
            return self.refusal(
                files,
                f"one collective call of all ranks moves {size(moved_bytes)}, "
                "which no buffer worth trying splits",
            )
        return self.parameter(
            files,
            values,
            default=default,
            ordered=True,
            reason=f"one collective call of all ranks moves {size(moved_bytes)}; the buffer of an aggregator "
            f"({size(now_bytes) if now_bytes else '16 MiB in ROMIO'}) decides the size of its system calls",
        )

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """Without collective buffering there is none."""
        return not context.is_buffered

    def conflict(self, value: str, context: SettingContext) -> str | None:
        """A whole number of stripe units, or a whole part of one."""
        unit = context.given("striping_unit") or context.given("lfs_stripe_size")
        if unit is None or int(value) % int(unit) == 0 or int(unit) % int(value) == 0:
            return None
        return f"{self.name}={value} is no whole number of stripe units of {unit}"


def sizes(round_bytes: int, default_bytes: int) -> list[int]:
    """Those that split what one collective call moves; if the default does, the first that does not, too."""
    whole = [one for one in SIZES_BYTES if one >= round_bytes][:1]
    split = [one for one in SIZES_BYTES if one < round_bytes]
    return [one for one in [*split, *(whole if default_bytes < round_bytes else [])] if one != default_bytes]
