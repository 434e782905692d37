"""lfs_stripe_count and lfs_stripe_size: `lfs setstripe` on the job's directory, which new files inherit.

For whatever writes the files, MPI-IO or not, on Lustre and on an emulated file system.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from forebay.advice.file_metrics import mean_bytes
from forebay.profiles.metrics import file_bytes
from forebay.profiles.model import File
from forebay.quantities import count, size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import STRIPED, Files, Job
from forebay.tune.settings.setting import MIB, Setting, SettingContext
from forebay.tune.settings.striping_hints import is_layout_seen, stripe_counts, units

MOUNTS = Path("/proc/self/mounts")


class LfsStripeCount(Setting):
    """On how many storage targets new files are laid out."""

    name = "lfs_stripe_count"
    source = "Cray's course on parallel I/O (2012)"
    is_in_calls = False

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """Where files worth a look are created in stripes, and no driver of the MPI lays them out."""
        striped = _laid_out(job, patterns, created)
        if isinstance(striped, str):
            return self.refusal(None, striped)
        largest = striped[0]
        now = str(largest.stripe_count) if largest.stripe_count else None
        file_size = file_bytes(largest) or 0
        smallest = min([largest.stripe_bytes or MIB, *units(mean_write_bytes(largest), file_size)])
        units_in_file = max(2, -(-file_size // smallest))
        own = next((line for line in job.script.stripe_lines if line.count is not None), None)
        by = f" (line {own.line} of the script)" if own else ""
        targets = f" of {job.stripe_targets}" if job.stripe_targets else ""
        return self.parameter(
            None,
            stripe_counts(job.stripe_targets, units_in_file, with_one=now != "1"),
            default=now,
            ordered=True,
            reason=f"{PurePath(largest.path).name}, {size(file_size)} written by "
            f"{count(largest.ranks or 1)} rank(s), is on {now or 'some'}{targets} storage target(s){by}; "
            "new files get another layout",
        )

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """Whether new files are on so many targets, or on others than by default."""
        return is_layout_seen(
            value, [file.stripe_count for file in default], [file.stripe_count for file in trial]
        )


class LfsStripeSize(Setting):
    """The stripe unit of new files."""

    name = "lfs_stripe_size"
    source = "KAUST's burst buffer talk (2018); Cray's course on parallel I/O (2012)"
    is_in_calls = False

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """As the count."""
        striped = _laid_out(job, patterns, created)
        if isinstance(striped, str):
            return None  # the count's refusal says it
        largest = striped[0]
        mean = mean_write_bytes(largest)
        mean_text = f", the mean system write is {size(mean)}" if mean else ""
        return self.parameter(
            None,
            units(mean, file_bytes(largest) or 0),
            default=str(largest.stripe_bytes) if largest.stripe_bytes else None,
            ordered=True,
            reason=f"the stripe unit of {PurePath(largest.path).name} is {size(largest.stripe_bytes or MIB)}"
            f"{mean_text}; the two should be near each other",
        )

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """On one target the unit does not matter."""
        return context.value("lfs_stripe_count") == "1"

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """New files have it, or another than by default."""
        return is_layout_seen(
            value, [file.stripe_bytes for file in default], [file.stripe_bytes for file in trial]
        )


def mean_write_bytes(file: File) -> float | None:
    """Of a system write."""
    posix = file.layers.get("POSIX")
    return mean_bytes(posix.write) if posix else None


def _laid_out(job: Job, patterns: Sequence[Files], created: Sequence[File]) -> list[File] | str:
    """Files that `lfs` can lay out, the largest first; else why there are none."""
    striped = [file for file in created if _is_striped(file, job)]
    if not created:
        return "no file that is worth a look is written, and the layout of a file that exists stays"
    if not striped:
        where = "the burst buffer" if job.place == "burst-buffer" else "a file system without stripes"
        return f"the files that the job writes are in {where}, not on Lustre"
    by_driver = {view.file.path for files in patterns if files.has_lustre_driver for view in files.views}
    striped = [file for file in striped if file.path not in by_driver]
    if not striped:
        return (
            "this MPI lays its files out itself: striping_factor and striping_unit are tried for each pattern"
        )
    return sorted(striped, key=lambda file: -(file_bytes(file) or 0))


def _is_striped(file: File, job: Job) -> bool:
    """Is it on Lustre, real or emulated? The emulation gives no layout for files without MPI-IO."""
    if job.is_emulated and file.stripe_count is not None:
        return True
    if job.is_emulated and job.place == "file-system":
        return PurePath(file.path).is_relative_to(job.profile.job.directory or job.script.path.parent)
    return (file.file_system or mounted_as(file.path) or "").lower() in STRIPED


def mounted_as(path: str) -> str | None:
    """Type of the file system that holds the path, from this machine's table; None if it is unknown."""
    best: tuple[int, str | None] = (-1, None)
    try:
        table = MOUNTS.read_text()
    except OSError:
        return None
    for line in table.splitlines():
        _, point, kind, *_ = line.split(" ")
        point = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), point)
        if PurePath(path).is_relative_to(point) and len(point) >= best[0]:
            best = (len(point), kind)
    return best[1]
