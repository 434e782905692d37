"""striping_unit and striping_factor: the layout of a file, asked for when it is created; or alignment."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.advice.thresholds import STRIPE_UNIT_BYTES_MIN, STRIPES_MAX
from forebay.profiles.model import File
from forebay.quantities import count, size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files
from forebay.tune.settings.setting import MIB, Setting, SettingContext, doubled, powers_near

UNITS_BYTES = (MIB // 4, MIB, 4 * MIB, 16 * MIB)


class StripingUnit(Setting):
    """With ROMIO's driver for Lustre, or Cray's MPI, the stripe unit; else only where ranges are divided."""

    name = "striping_unit"
    source = "KAUST's burst buffer talk (2018); ROMIO Users Guide"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where data are written by collective calls."""
        calls = files.write
        if not calls.is_used:
            return None
        if files.default("romio_no_indep_rw") == "true":
            return self.refusal(files, "the job asks for romio_no_indep_rw, with which it can hang")
        if files.has_lustre_driver:
            return self.parameter(
                files,
                units(calls.mean_system_bytes, files.bytes),
                default=str(files.stripe_bytes) if files.stripe_bytes else files.default(self.name),
                ordered=True,
                reason=f"the mean system write is {size(calls.mean_system_bytes or 0)}, the stripe unit "
                f"{size(files.stripe_bytes or 0)}; it acts when the file is created",
            )
        if not calls.collective:
            return None
        unit_bytes = files.stripe_bytes
        if unit_bytes is None:
            return self.refusal(files, "no stripe unit is known that aggregators could be aligned to")
        if calls.round_bytes < 2 * unit_bytes:
            return self.refusal(
                files,
                f"one collective call of all ranks writes {size(calls.round_bytes)}, no two stripe units of "
                f"{size(unit_bytes)}: aligned, it would have one aggregator",
            )
        return self.parameter(
            files,
            [unit_bytes],
            default=files.main.hint(self.name),
            ordered=True,
            reason="this driver only moves the borders between aggregators to multiples of it, here the "
            f"file's stripe unit of {size(unit_bytes)}, so that no two write into one stripe",
        )

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """Without aggregators there are no borders between them."""
        return not context.machine.lustre_driver and not context.is_buffered

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """The trial's files have it as their stripe unit, and the default's have another."""
        had, has = ([file.stripe_bytes == int(value) for file in files] for files in (default, trial))
        return True if any(has) and not any(had) else None


class StripingFactor(Setting):
    """On how many storage targets a file is laid out."""

    name = "striping_factor"
    source = "Cray's course on parallel I/O (2012)"
    is_in_calls = False

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """With ROMIO's driver for Lustre, or Cray's MPI; elsewhere nobody obeys it."""
        if not files.write.is_used:
            return None
        if not files.has_lustre_driver:
            if files.stripe_bytes is None:
                return None
            return self.refusal(files, "this MPI's driver does not obey it; `lfs setstripe` is tried instead")
        laid_out = files.main.file.stripe_count
        now = str(laid_out) if laid_out else files.default(self.name)
        units_in_file = max(2, files.bytes // (files.stripe_bytes or MIB))
        return self.parameter(
            files,
            stripe_counts(files.job.stripe_targets, units_in_file, with_one=now != "1"),
            default=now,
            ordered=True,
            reason=f"{size(files.bytes)}, written by {count(files.ranks)} ranks, are on {now or 'some'} "
            "storage target(s); it acts when the file is created",
        )

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """Whether the trial's files are on so many targets, or on others than by default."""
        return is_layout_seen(
            value, [file.stripe_count for file in default], [file.stripe_count for file in trial]
        )


def units(mean_bytes: float | None, file_bytes: int) -> list[int]:
    """Stripe units worth trying: about Lustre's default, and near the mean system call, from 64 KiB on."""
    near = {max(STRIPE_UNIT_BYTES_MIN, powers_near(mean_bytes))} if mean_bytes else set()
    found = sorted({*UNITS_BYTES, *near})
    return [one for one in found if one <= file_bytes] or found[:1]


def stripe_counts(targets: int | None, units_in_file: int, *, with_one: bool) -> list[int]:
    """1, 2, 4 ... targets, but no more than the file has stripe units."""
    most = min(targets or STRIPES_MAX, units_in_file)
    values = set(doubled(1 if with_one else 2, most))
    if targets is not None and 1 < targets <= units_in_file:
        values.add(targets)
    return sorted(values)


def is_layout_seen(value: str, default: list[int | None], trial: list[int | None]) -> bool | None:
    """Is a layout the one that was asked for, or at least another than before? None: not known."""
    after = {one for one in trial if one is not None}
    if not after:
        return None
    return int(value) in after or after != {one for one in default if one is not None}
