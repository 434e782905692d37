"""The records of a study's runs: default against tuned through the comparison of any two jobs."""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import ForebayError
from forebay.profiles import sources
from forebay.profiles.model import Profile
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, StudyFigures
from forebay.report.tuning.sentences import PLACE_NAMES
from forebay.tune.model import Configuration, Run


@dataclass(frozen=True)
class Pair:
    """The last default run and the last tuned run of a place, with what was recorded of them."""

    default: Run
    tuned: Run
    profiles: tuple[Profile, Profile]


def pair(study: StudyFigures, place: PlaceFigures) -> Pair | str | None:
    """None where nothing is recommended; else the pair, or why there is none."""
    if not place.recommended:
        return None
    runs = [_last(place, DEFAULT), _last(place, place.recommended)]
    if not all(runs):
        return "No run of the default or of the tuned job has left a record."
    try:
        found = [sources.open_path(study.study.directory / run.record) for run in runs]
    except ForebayError as error:
        return f"The records cannot be compared: {error}."
    return Pair(runs[0], runs[1], (found[0], found[1]))


def _last(place: PlaceFigures, configuration: Configuration) -> Run | None:
    return next((run for run in reversed(place.sample(configuration).runs) if run.record), None)


def added_lines(study: StudyFigures) -> list[tuple[str, list[str]]]:
    """What the tuned script has more than the job's, as a diff with its caption.

    Where one of the two is gone or was changed since: of each place what the tuned runs' script had more than
    that of the default runs. Empty if nothing is recommended, or nothing is known.
    """
    whole = _of_tuned_script(study)
    if whole:
        return [("Added by the tuned script", whole)]
    return [
        (f"Added in the tuned runs, {PLACE_NAMES[place.place]}", lines)
        for place in study.places
        if (lines := _of_runs(study, place))
    ]


def _of_tuned_script(study: StudyFigures) -> list[str]:
    if not study.study.written:
        return []
    head, written = study.study.head, study.study.written[-1]
    texts = [_script(Path(head.script), head.script_digest), _script(Path(written.path), written.digest)]
    return _diff(*texts)


def _of_runs(study: StudyFigures, place: PlaceFigures) -> list[str]:
    runs = [_last(place, DEFAULT), _last(place, place.recommended)]
    if not place.recommended or not all(runs):
        return []
    return _diff(*(_script(study.study.run_directory(run.number) / "script.sh") for run in runs))


def _diff(one: list[str] | None, other: list[str] | None) -> list[str]:
    if one is None or other is None:
        return []
    lines = difflib.unified_diff(one, other, lineterm="", n=1)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _script(path: Path, digest: str | None = None) -> list[str] | None:
    """Its lines; None if it is gone, or is not the text that had this digest."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    if digest is not None and hashlib.sha256(text).hexdigest() != digest:
        return None
    return os.fsdecode(text).splitlines()
