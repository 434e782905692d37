"""The last plan of each job script, in the state directory: a report shows it next to a later run."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec

from forebay.atomic_file import write_atomically
from forebay.plan.answer import Plan
from forebay.plan.errors import PlanError
from forebay.profiles import regular_file
from forebay.profiles.errors import ProfileError


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with its script and its time."""

    script: str  # absolute path
    made_unix_s: float
    plan: Plan


def save(plan: Plan, script: Path, state: Path) -> None:
    """Keeps the plan in place of an older one of the script. Raises PlanError if it cannot be written."""
    path = _path(script, state)
    saved = Saved(script=str(script.absolute()), made_unix_s=time.time(), plan=plan)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(saved), mode=0o600)
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}", "FOREBAY_STATE names the state directory") from error


def find(script: str, begun_unix_s: float, state: Path) -> Saved | None:
    """The plan of the script, if it was made before the run began. None for one that cannot be read."""
    try:
        saved = msgspec.json.decode(regular_file.read_bytes(_path(Path(script), state)), type=Saved)
    except (ProfileError, OSError, msgspec.DecodeError):
        return None
    is_of_run = saved.script == str(Path(script).absolute()) and saved.made_unix_s <= begun_unix_s
    return saved if is_of_run else None


def _path(script: Path, state: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(script.absolute())).hexdigest()
    return state / "plans" / f"{digest[:32]}.json"
