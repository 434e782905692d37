"""dw_placement and dw_stripe_bytes: where the data of files are in a namespace over the nodes of the job.

Keys of `#DW jobdw` for the engine ceph (docs/reference/directives.md).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import PurePath

from forebay.profiles.metrics import file_bytes
from forebay.profiles.model import File
from forebay.quantities import count, size, size_bytes
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files, Job
from forebay.tune.settings.setting import MIB, Setting
from forebay.tune.settings.striping_hints import units

#: The engine whose namespaces take them.
ENGINE = "ceph"
#: Its default unit, and what each is a multiple of.
UNIT_BYTES, UNIT_BYTES_MIN = MIB, 64 << 10


class DwPlacement(Setting):
    """On all nodes, or on the node that creates the file."""

    name = "dw_placement"
    source = "the CephFS documents, File layouts; Forebay"
    is_in_calls = False

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """Where files that matter are written by one rank each."""
        if not _is_asked_for(job):
            return None
        default = _written(job, "placement", "striped")
        own = [file for file in created if _writers(file) == 1]
        if not own and default != "local":
            reason = "several ranks write each file that is worth a look: one node would have all of its data"
            return self.refusal(None, reason)
        files = own or created
        largest = max(files, key=lambda file: file_bytes(file) or 0)
        return self.parameter(
            None,
            ["striped", "local"],
            default=default,
            ordered=False,
            reason=f"{count(len(own))} file(s) such as {PurePath(largest.path).name}, "
            f"{size(file_bytes(largest) or 0)}, are written by one rank each: stored on its own node, they "
            "need no network",
        )


class DwStripeBytes(Setting):
    """What is next to each other on one node."""

    name = "dw_stripe_bytes"
    source = "the CephFS documents, File layouts"
    is_in_calls = False

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """Where a file has several units."""
        if not _is_asked_for(job) or not created:
            return None
        largest = max(created, key=lambda file: file_bytes(file) or 0)
        posix = largest.layers.get("POSIX")
        calls = posix.write.calls if posix else None
        mean_bytes = (posix.write.bytes or 0) / calls if posix and calls else None
        default = _in_bytes(_written(job, "stripe_bytes", str(UNIT_BYTES)))
        told = f", the mean system write is {size(mean_bytes)}" if mean_bytes else ""
        return self.parameter(
            None,
            [unit for unit in units(mean_bytes, file_bytes(largest) or 0) if unit % UNIT_BYTES_MIN == 0],
            default=default,
            ordered=True,
            reason=f"{PurePath(largest.path).name} has {size(file_bytes(largest) or 0)}{told}; a unit is on "
            "one node",
        )


def _writers(file: File) -> int:
    """Ranks that wrote it; all that opened it where that is not known."""
    known = [layer.write.ranks for layer in file.layers.values() if layer.write.ranks]
    return max(known, default=file.ranks or 1)


def _is_asked_for(job: Job) -> bool:
    """Has the job such a namespace, and a line that can say it?"""
    allocation = job.profile.job.allocation
    is_engine = allocation is not None and allocation.engine == ENGINE
    return is_engine and job.place == "burst-buffer" and job.script.jobdw is not None


def _in_bytes(text: str | None) -> str | None:
    """As a number, if it is a size."""
    if text is None or text.isdecimal():
        return text
    with contextlib.suppress(ValueError):
        return str(int(size_bytes(text)))
    return text


def _written(job: Job, key: str, default: str) -> str | None:
    """What the line says; of a profile that it names nothing is known."""
    values = job.script.jobdw.values if job.script.jobdw else {}
    return values.get(key, None if "profile" in values else default)
