"""dw_placement and dw_stripe_bytes: where the data of files are in a namespace over the nodes of the job.

Keys of `#DW jobdw` for the engine ceph (docs/reference/directives.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from forebay.advice.thresholds import STRIPE_UNIT_BYTES_MIN
from forebay.profiles.metrics import file_bytes
from forebay.profiles.model import File, Profile
from forebay.quantities import count, size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files, Job
from forebay.tune.settings.lustre import mean_write_bytes
from forebay.tune.settings.setting import MIB, Setting
from forebay.tune.settings.striping_hints import units

#: On one node, and with other engines, the keys have no effect.
ENGINE = "ceph"
#: The largest unit of the engine. Each is a multiple of STRIPE_UNIT_BYTES_MIN.
UNIT_BYTES_MAX = 128 * MIB
STAGED = "the job stages files in, which are laid out once for all runs of a series"


class DwPlacement(Setting):
    """On all nodes, or on the node that creates the file."""

    name = "dw_placement"
    source = "the CephFS documents, File layouts; Forebay"
    is_in_calls = False

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """Where files that matter are written by one rank each."""
        files = _in_namespace(job, created)
        if isinstance(files, str):
            return self.refusal(None, files)
        if not files or job.namespace is None:
            return None
        default = job.namespace.placement
        if not job.namespace.takes_local:
            return self.refusal(None, "the mounts of the namespace do not place files on one node")
        own = [file for file in files if _writers(file) == 1]
        if not own and default != "local":
            reason = "several ranks write each file that is worth a look: one node would have all of its data"
            return self.refusal(None, reason)
        largest = max(own or files, key=lambda file: file_bytes(file) or 0)
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
        files = _in_namespace(job, created)
        if isinstance(files, str) or not files or job.namespace is None:
            return None  # the placement's refusal says it
        largest = max(files, key=lambda file: file_bytes(file) or 0)
        mean = mean_write_bytes(largest)
        mean_text = f", the mean system write is {size(mean)}" if mean else ""
        return self.parameter(
            None,
            [one for one in units(mean, file_bytes(largest) or 0) if _is_unit(one)],
            default=str(job.namespace.stripe_bytes),
            ordered=True,
            reason=f"{PurePath(largest.path).name} has {size(file_bytes(largest) or 0)}{mean_text}; a unit "
            "is on one node",
        )


def is_over_nodes(profile: Profile) -> bool:
    """Had the job a namespace of the engine over its nodes?"""
    allocation = profile.job.allocation
    return allocation is not None and allocation.engine == ENGINE


def _is_unit(size_bytes: int) -> bool:
    return size_bytes % STRIPE_UNIT_BYTES_MIN == 0 and size_bytes <= UNIT_BYTES_MAX


def _writers(file: File) -> int:
    """Ranks that wrote it; all that opened it where that is not known."""
    known = [layer.write.ranks for layer in file.layers.values() if layer.write.ranks]
    return max(known, default=file.ranks or 1)


def _in_namespace(job: Job, created: Sequence[File]) -> list[File] | str:
    """Those of the files that are in a namespace with a layout of its own; else why it stays as it is."""
    if job.namespace is None or job.script.jobdw is None or not is_over_nodes(job.profile):
        return []
    files = [file for file in created if job.namespace.has(file.path)]
    return STAGED if files and job.script.jobdw.stages_in else files
