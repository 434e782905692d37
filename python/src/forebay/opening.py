"""`forebay.open`: the record of a job. Needs the standard library only."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from forebay.errors import ForebayError
from forebay.program import ProgramNotFoundError, find_forebay
from forebay.results import Record, read_record

#: So many ids an error message names.
_NAMED_MAX = 5
#: A part of an id has at least so many characters, as on the command line.
_PART_CHARACTERS_MIN = 3


class NotRecordedError(ForebayError, LookupError):
    """No recorded job has this id, or several ids begin or end with it."""


def open(id: str = "last") -> Record:  # noqa: A001
    """The record of a job: "last", its id, the scheduler's id, or a unique beginning or end of one."""
    folders = [state / "profiles" for state in _state_directories()]
    found = sorted((one for folder in folders for one in _candidates(folder)), reverse=True)
    if not found:
        where = " or ".join(map(str, folders)) or "any state directory"
        raise NotRecordedError(f"no job is recorded in {where}", "run one with forebay.run")
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


def _state_directories() -> list[Path]:
    """Where `forebay` keeps records: in the state directory, or below TMPDIR if that is not writable."""
    fallback = Path(os.environ.get("TMPDIR") or "/tmp") / f"forebay-state-{os.geteuid()}"
    own = _configured_state() or _default_state()
    return [*([own] if own else []), *([fallback] if _is_private(fallback) else [])]


def _configured_state() -> Path | None:
    """The setting `state`. Only the program reads configuration files; without it FOREBAY_STATE is used."""
    import subprocess  # not at `import forebay`, which each rank of a job may do

    try:
        command = [find_forebay(), "config", "--json"]
    except ProgramNotFoundError:
        named = os.environ.get("FOREBAY_STATE", "")
        if named and not os.path.isabs(named):
            text = f"FOREBAY_STATE: {named!r} is a relative path"
            raise ForebayError(text, "name an absolute directory") from None
        return Path(named) if named else None
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        answer = json.loads(done.stdout)
        if done.returncode == 0:
            (state,) = [one["value"] for one in answer["settings"] if one["key"] == "state"]
            return Path(state) if state else None
        raise ForebayError(answer["error"], answer["hint"])
    except (LookupError, TypeError, json.JSONDecodeError):
        text = f"forebay config --json failed with exit code {done.returncode}: {done.stderr.strip()}"
        raise ForebayError(text, f"{command[0]} and this Python package must be of one version") from None


def _default_state() -> Path | None:
    for name, below in (("XDG_STATE_HOME", "forebay"), ("HOME", ".local/state/forebay")):
        if os.path.isabs(parent := os.environ.get(name, "")):
            return Path(parent) / below
    return None


def _is_private(folder: Path) -> bool:
    """Whether only this user can write there. Another user may have created it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    of_others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & of_others


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
