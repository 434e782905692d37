"""The layout of the namespace of a series over several nodes, which all its runs have in turn.

A job has it from its `#DW jobdw` line (`tune/script_forms/jobdw.py`). A series has one allocation, so its
directory gets the layout before each run, and what the run creates inherits it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from forebay.series_client import Ready
from forebay.tune.errors import TuneError
from forebay.tune.model import Configuration, Plan
from forebay.tune.settings.job_view import Namespace
from forebay.tune.settings.namespace_layout import DwPlacement, DwStripeBytes

#: CephFS's attribute of a directory.
ATTRIBUTE = "ceph.dir.layout"
#: Pools of the engine: where each file goes to the node that creates it, and where files are on all nodes.
POOLS = {"local": "local", "striped": "data"}
VARIABLE = "DW_JOB_STRIPED"


class NamespaceLayout:
    """That of one series."""

    def __init__(self, ready: Ready) -> None:
        self._name = ready.variables.get(VARIABLE)
        self._path = Path(ready.root + (self._name or ""))
        self._first: dict[str, str] | None = None  # as the series began with it

    def now(self) -> Namespace | None:
        """The namespace, with what can be set; None: it is not one of the engine ceph."""
        if self._name is None:
            return None
        try:
            first = self._known()
        except OSError:
            return None
        placements = {pool: name for name, pool in POOLS.items()}
        return Namespace(
            path=self._name,
            placement=placements.get(first["pool"], "striped"),
            stripe_bytes=int(first["stripe_unit"]),
            takes_local=self._probe_layout({"pool": POOLS["local"]}),
        )

    def _probe_layout(self, words: dict[str, str]) -> bool:
        """Afterwards it is as it was at first."""
        try:
            self._write(words)
        except OSError:
            return False
        self._write({})
        return True

    def set(self, plan: Plan, configuration: Configuration) -> None:
        """What the configuration asks for, else as it was at first; nothing where no layout was ever set.

        TuneError if the namespace does not take it.
        """
        settings = {one.name: one.setting for one in plan.parameters}
        asked = _words({settings[name]: value for name, value in configuration.items()})
        if not asked and self._first is None:
            return
        try:
            self._write(asked)
        except OSError as error:
            raise TuneError(
                f"{self._name or VARIABLE}: it takes no such layout: {error.strerror}",
                "tune the job where its namespace is one of the engine ceph, in a new study",
            ) from error

    def _write(self, words: dict[str, str]) -> None:
        whole = self._known() | words
        os.setxattr(self._path, ATTRIBUTE, " ".join("=".join(word) for word in whole.items()).encode())

    def _known(self) -> dict[str, str]:
        if self._first is None:
            if self._name is None:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            self._first = _of(self._path)
        return self._first


def _of(path: Path) -> dict[str, str]:
    """What new files have there: the layout of the nearest directory with one of its own."""
    for directory in (path, *path.parents):
        try:
            text = os.getxattr(directory, ATTRIBUTE).decode()
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise
        else:
            return dict(word.split("=", 1) for word in text.split())
    raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))


def _words(asked: dict[str, str]) -> dict[str, str]:
    """As the attribute has them; each unit is an object of its own."""
    words = {}
    if placement := asked.get(DwPlacement.name):
        words["pool"] = POOLS[placement]
    if unit := asked.get(DwStripeBytes.name):
        words |= {"stripe_unit": unit, "object_size": unit}
    return words
