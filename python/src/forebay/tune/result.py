"""What a tuning leaves for the user: the tuned script."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import statistics
import time
from pathlib import Path, PurePosixPath

from forebay.atomic_file import write_atomically
from forebay.profiles import sources
from forebay.profiles.metrics import slowest_rank_s, top_layer
from forebay.profiles.model import Profile
from forebay.tune import script_forms
from forebay.tune.errors import TuneError
from forebay.tune.job_script.script import JobScript
from forebay.tune.listener import PLACE_NAMES, Listener
from forebay.tune.model import Configuration, Place, Run, Verdict, key
from forebay.tune.study import Study
from forebay.tune.study_setup import TuneRequest


def check_writable(study: Study, request: TuneRequest) -> None:
    """TuneError if the tuned script's name is taken by a file that is not as we wrote it."""
    path = output_path(study)
    if request.output and request.output.absolute() != path:
        raise TuneError(f"this study writes {path}, not {request.output}", "--study DIR begins a new one")
    if not os.access(path.parent, os.W_OK):
        raise TuneError(f"{path}: its directory cannot be written", "--output FILE writes it elsewhere")
    if request.overwrite or not path.exists() or _is_ours(study, path):
        return
    raise TuneError(
        f"{path}: there is such a file, and this study did not write it, or it was changed since",
        "--overwrite replaces it; --output FILE writes another",
    )


def output_path(study: Study) -> Path:
    """Of the tuned script."""
    assert study.head.output is not None
    return Path(study.head.output)


def _is_ours(study: Study, path: Path) -> bool:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return any(one.path == str(path) and one.digest == digest for one in study.written)


def write(study: Study, job: JobScript, listener: Listener) -> None:
    """Writes the tuned script, whole or not at all; without a setting to recommend one of earlier goes."""
    path = output_path(study)
    tuned = {place: verdict for place, verdict in study.verdicts.items() if verdict.recommended}
    if not tuned:
        if path.exists() and _is_ours(study, path):
            path.unlink()
            listener.notify(f"{path} is removed: what it set is no longer shown to be better")
        return
    text = _text(study, job, tuned)
    _replace(path, text, job.path)
    study.append_written(path, hashlib.sha256(text.encode()).hexdigest())


def _text(study: Study, job: JobScript, tuned: dict[Place, Verdict]) -> str:
    by_place = {
        place: (study.plans[place], _acting(study, place, verdict), _sentence(study, place, verdict))
        for place, verdict in tuned.items()
    }
    profile = _last_profile(study, next(iter(tuned)), {})
    assert profile is not None
    day = time.strftime("%Y-%m-%d")
    head = [f"Tuned by forebay on {day} from {job.path.name}; the report: forebay report {study.directory}"]
    gains = {place: _gains(study, place, verdict) for place, verdict in tuned.items()}
    return script_forms.tuned_script(job, by_place, script_forms.choose(profile), head, gains)


def _acting(study: Study, place: Place, verdict: Verdict) -> Configuration:
    """What is recommended, without what showed no effect in any run that decided: the fewest lines."""
    runs = _runs_of(study, place, verdict.recommended)
    idle = [set(run.without_effect) for run in runs]
    always_idle = set.intersection(*idle) if idle else set()
    return {name: value for name, value in verdict.recommended.items() if name not in always_idle}


def _sentence(study: Study, place: Place, verdict: Verdict) -> str:
    emulated = f" (emulated: {study.head.emulated})" if study.head.emulated else ""
    return f"On {PLACE_NAMES[place]}{emulated}: {verdict.reason}."


def _runs_of(study: Study, place: Place, configuration: Configuration) -> list[Run]:
    """Those of the real job that count, the last round's if there was one."""
    wanted = [
        run
        for run in study.runs_in(place)
        if not run.replay and run.status == "ok" and key(run.configuration) == key(configuration)
    ]
    return [run for run in wanted if run.phase == "final"] or wanted


def _last_profile(study: Study, place: Place, configuration: Configuration) -> Profile | None:
    runs = _runs_of(study, place, configuration)
    return sources.open_path(study.run_directory(runs[-1].number)) if runs else None


def _gains(study: Study, place: Place, verdict: Verdict) -> dict[str, str]:
    """By pattern: the I/O time of its files, default and tuned, medians of the runs that decided."""
    patterns = {one.pattern for one in study.plans[place].parameters if one.name in verdict.recommended}
    profiles = [
        [sources.open_path(study.run_directory(run.number)) for run in _runs_of(study, place, configuration)]
        for configuration in ({}, verdict.recommended)
    ]
    found = {}
    for pattern in patterns:
        default_s, tuned_s = ([_seconds(one, pattern) for one in some] for some in profiles)
        if default_s and tuned_s:
            before_s, after_s = statistics.median(default_s), statistics.median(tuned_s)
            what = f"I/O of {pattern}" if pattern else "I/O"
            times = f" ({before_s / after_s:.1f} times as fast)" if after_s > 0 else ""
            found[pattern or "*"] = f"{what}: {before_s:.2f} s -> {after_s:.2f} s{times}"
    return found


def _seconds(profile: Profile, pattern: str | None) -> float:
    """Of the slowest rank of each file that the pattern is for, summed."""
    total_s = 0.0
    for program in profile.programs:
        for file in program.files:
            layer = top_layer(file)
            if layer and (pattern is None or _matches(file.path, pattern)):
                total_s += slowest_rank_s(file, layer[1]) or 0.0
    return total_s


def _matches(path: str, pattern: str) -> bool:
    """As libforebay_mpi compares them: docs/reference/mpi.md."""
    name = path if "/" in pattern else PurePosixPath(path).name
    return fnmatch.fnmatchcase(name, pattern)


def _replace(path: Path, text: str, original: Path) -> None:
    """With the mode of the original."""
    try:
        write_atomically(path, text.encode(), mode=original.stat().st_mode & 0o7777)
    except OSError as error:
        raise TuneError(f"{path}: {error.strerror}", "--output FILE writes it elsewhere") from error
