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

#: CephFS's attribute of a directory.
ATTRIBUTE = "ceph.dir.layout"
#: Pools of the engine: where each file goes to the node that creates it, and where files are on all nodes.
POOLS = {"local": "local", "striped": "data"}
VARIABLE = "DW_JOB_STRIPED"
SETTINGS = ("dw_placement", "dw_stripe_bytes")


class NamespaceLayout:
    """That of one series."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready
        self._first: dict[str, str] | None = None  # as the series began with it

    def set(self, plan: Plan, configuration: Configuration) -> None:
        """What the configuration asks for, else as it was at first; nothing where no layout is tuned.

        TuneError if the namespace does not take it.
        """
        own = [one for one in plan.parameters if one.setting in SETTINGS]
        if not own:
            return
        asked = {one.setting: configuration[one.name] for one in own if one.name in configuration}
        name = self._ready.variables[VARIABLE]
        path = self._ready.root + name
        try:
            if self._first is None:
                self._first = _of(Path(path))
            wanted = self._first | _words(asked)
            os.setxattr(path, ATTRIBUTE, " ".join("=".join(word) for word in wanted.items()).encode())
        except OSError as error:
            raise TuneError(
                f"{name}: it does not take another layout: {error.strerror}",
                "leave out the job's nodes, or tune it where its namespace is one of the engine ceph",
            ) from error


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
    if placement := asked.get("dw_placement"):
        words["pool"] = POOLS[placement]
    if unit := asked.get("dw_stripe_bytes"):
        words |= {"stripe_unit": unit, "object_size": unit}
    return words
