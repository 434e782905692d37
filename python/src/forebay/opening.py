"""`forebay.open`: the record of a job. Needs the standard library only."""

from __future__ import annotations

import json
import os
from pathlib import Path

from forebay.errors import ForebayError
from forebay.results import Record, read_record

#: So many ids an error message names.
_NAMED_MAX = 5
#: A part of an id has at least so many characters, as on the command line.
_PART_CHARACTERS_MIN = 3


class NotRecordedError(ForebayError, LookupError):
    """No recorded job has this id, or several ids begin or end with it."""


def open(id: str = "last") -> Record:  # noqa: A001
    """The record of a job: "last", its id, the scheduler's id, or a unique beginning or end of one."""
    folder = _state_directory() / "profiles"
    found = sorted(_candidates(folder), reverse=True)
    if not found:
        raise NotRecordedError(f"no job is recorded in {folder}", "run one with forebay.run")
    if id == "last":
        return read_record(found[0][2])
    exact = [path for _, names, path in found if id in names]
    if exact:
        return read_record(exact[0])
    near = [path for _, names, path in found if any(_is_part(id, name) for name in names)]
    if len(near) == 1:
        return read_record(near[0])
    names = ", ".join(path.name for path in (near or [path for _, _, path in found])[:_NAMED_MAX])
    if near:
        raise NotRecordedError(f"{id!r}: this is a part of {len(near)} ids: {names}", "write more of the id")
    raise NotRecordedError(f"{id!r}: no recorded job has this id", f"recorded last: {names}")


def _is_part(part: str, name: str) -> bool:
    return len(part) >= _PART_CHARACTERS_MIN and (name.startswith(part) or name.endswith(part))


def _state_directory() -> Path:
    if state := os.environ.get("FOREBAY_STATE"):
        return Path(state)
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "forebay"
    return Path.home() / ".local" / "state" / "forebay"


def _candidates(folder: Path) -> list[tuple[float, tuple[str, ...], Path]]:
    """The end or start, the ids and the path of each record. A record that cannot be read is found, too."""
    found: list[tuple[float, tuple[str, ...], Path]] = []
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            job = json.loads((path / "job.json").read_text(encoding="utf-8", errors="surrogateescape"))
            last = float(job.get("ended_unix_s") or job["started_unix_s"])
            more = (str(job["scheduler_job"]),) if job.get("scheduler_job") else ()
        except (OSError, ValueError, LookupError, AttributeError, TypeError):
            last, more = path.stat().st_mtime, ()
        found.append((last, (path.name, *more), path))
    return found
