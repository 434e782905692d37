"""The records of a study's runs: default against tuned through the comparison of any two jobs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import ForebayError
from forebay.profiles import sources
from forebay.profiles.model import Profile
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, StudyFigures
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


def added_lines(study: StudyFigures, place: PlaceFigures) -> list[str]:
    """What tells the script of the tuned runs from that of the default runs, as a diff; empty if unknown."""
    runs = [_last(place, DEFAULT), _last(place, place.recommended)]
    if not place.recommended or not all(runs):
        return []
    texts = [_script(study.study.run_directory(run.number)) for run in runs]
    if None in texts:
        return []
    lines = difflib.unified_diff(*texts, lineterm="", n=1)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _script(directory: Path) -> list[str] | None:
    try:
        return (directory / "script.sh").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
