"""Records of `forebay run` and `forebay profile` in the state directory (docs/explanation/profiles.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from forebay.profiles import regular_file
from forebay.profiles.errors import ProfileError

#: So many candidates an error message names.
NAMED_MAX = 5
#: The job that ended last.
LAST = "last"
#: Fewest characters of a part of an id; crates/forebay-cli/src/job_id.rs has the same rule.
PART_CHARACTERS_MIN = 3


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record as far as it takes to find it."""

    path: Path
    id: str
    scheduler_id: str | None
    last_unix_s: float


def state_directory(environment: Mapping[str, str]) -> Path:
    """Where Forebay keeps its state; `forebay` sets FOREBAY_STATE for the verbs written in Python."""
    if environment.get("FOREBAY_STATE"):
        return Path(environment["FOREBAY_STATE"])
    if environment.get("XDG_STATE_HOME"):
        return Path(environment["XDG_STATE_HOME"]) / "forebay"
    return Path.home() / ".local" / "state" / "forebay"


def records(state: Path) -> list[Record]:
    """All records, the newest first: by their end, as long as they run by their begin.

    No record, and no state directory, are an empty list.
    """
    folder = state / "profiles"
    try:
        paths = [path for path in folder.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ProfileError(
            f"{folder}: {error.strerror}", "FOREBAY_STATE names the state directory"
        ) from error
    return sorted(map(_record, paths), key=lambda record: (record.last_unix_s, record.id), reverse=True)


def _record(path: Path) -> Record:
    """A record whose job.json cannot be read is found all the same: by its folder's name and time."""
    try:
        job = json.loads(regular_file.read_bytes(path / "job.json"))
    except (OSError, ValueError):
        job = {}
    job = job if isinstance(job, dict) else {}
    scheduler_id = job.get("scheduler_job")
    last = job.get("ended_unix_s") or job.get("started_unix_s")
    return Record(
        path=path,
        id=path.name,
        scheduler_id=None if scheduler_id is None else str(scheduler_id),
        last_unix_s=float(last) if isinstance(last, int | float) else path.stat().st_mtime,
    )


def last_record(state: Path) -> Path:
    """The record of the job that ended last: of a job within a job that of the outer one."""
    found = records(state)
    if not found:
        raise ProfileError(
            f"no job has been recorded yet in {state / 'profiles'}",
            "`forebay run job.sh` records by itself, `forebay profile -- COMMAND` any other command",
        )
    return found[0].path


def find_record(state: Path, wanted: str) -> Path:
    """The record of a job id, ours or the scheduler's; `last`, or the beginning or the end of an id.

    A scheduler may have given an id to several runs (a job that was requeued): the newest is taken.
    """
    if wanted == LAST:
        return last_record(state)
    found = records(state)
    for record in found:
        if wanted in (record.id, record.scheduler_id):
            return record.path
    near = [
        record
        for record in found
        if any(_is_part(wanted, name) for name in (record.id, record.scheduler_id or ""))
    ]
    if len(near) == 1:
        return near[0].path
    if near:
        names = ", ".join(record.id for record in near[:NAMED_MAX])
        more = ", ..." if len(near) > NAMED_MAX else ""
        raise ProfileError(
            f"{wanted} is a part of {len(near)} ids: {names}{more}",
            "write more digits, from the beginning or from the end",
        )
    raise ProfileError(f"{wanted}: no such file, and no recorded job of that id", _known(found, state))


def _is_part(wanted: str, name: str) -> bool:
    return len(wanted) >= PART_CHARACTERS_MIN and (name.startswith(wanted) or name.endswith(wanted))


def _known(found: list[Record], state: Path) -> str:
    if not found:
        return f"no job has been recorded yet in {state / 'profiles'}"
    return "recorded last: " + ", ".join(record.id for record in found[:NAMED_MAX])
