"""Beginning a study, or going on with one."""

from __future__ import annotations

import os
import platform
import random
import time
from pathlib import Path
from typing import Any

import msgspec

from forebay.profiles import regular_file
from forebay.profiles.machine import Machine, read_machine
from forebay.tune.budget import RUNS_DEFAULT, Budget
from forebay.tune.errors import TuneError
from forebay.tune.job_script.script import JobScript
from forebay.tune.model import PLACES, Place
from forebay.tune.runs.tree_copy import remove
from forebay.tune.study import FILE_NAME, Head, Objective, Study

#: What a directory may have in which a study is begun: a submitted tuner, or one that was killed, left it.
_LEFT_BEFORE_A_STUDY = {FILE_NAME, "submitted", "forebay.log"}
#: What a study makes for its runs, and for its report.
_MADE_BY_RUNS = (
    "runs",
    "work",
    "trace",
    "inputs.json",
    "check.txt",
    "report.html",
    "comparison-*.html",
    FILE_NAME,
)


class TuneRequest(msgspec.Struct, kw_only=True):
    """What the user asks for. None: as the study has it, or the default."""

    script: Path
    arguments: list[str] | None = None
    study: Path | None = None
    output: Path | None = None
    budget: Budget | None = None
    trials: int | None = None  # so many more runs on a study that there is
    places: list[Place] | None = None
    strategy: str | None = None
    objective: Objective | None = None
    check: str | None = None
    exclude: list[str] | None = None
    replay: bool | None = None
    traces: list[str] | None = None
    think: float | None = None
    seed: int | None = None
    time_factor: float | None = None
    overwrite: bool = False
    options: list[str] | None = None  # of `forebay run`


#: Members of TuneRequest and Head that must not change from one tuner of a study to the next.
_FIXED = (
    "arguments",
    "places",
    "strategy",
    "objective",
    "check",
    "exclude",
    "replay",
    "traces",
    "think",
    "options",
)


def study_directory(request: TuneRequest) -> Path:
    """JOB.tune: in the script's directory, or here if nothing can be written there."""
    if request.study:
        return request.study.absolute()
    script = request.script.absolute()
    return _default_parent(script) / f"{script.stem}.tune"


def _default_parent(script: Path) -> Path:
    return script.parent if os.access(script.parent, os.W_OK) else Path.cwd()


def has_study(directory: Path) -> bool:
    """Whether a study was begun there: one whose first line was never finished was not."""
    try:
        with regular_file.open_file(directory / FILE_NAME) as file:
            return b"\n" in file.readline()
    except OSError:
        return False


def check_directory(request: TuneRequest) -> None:
    """TuneError if the study's directory has files that are not of a study: runs would replace them."""
    directory = study_directory(request).resolve()
    hint = "--study DIR names a new directory, or one that has a study"
    if request.script.resolve().is_relative_to(directory):
        raise TuneError(f"{directory}: the study cannot be in a directory that has the script", hint)
    if has_study(directory) or not directory.is_dir():
        return
    others = sorted({path.name for path in directory.iterdir()} - _LEFT_BEFORE_A_STUDY)
    if others:
        raise TuneError(f"{directory}: no study, and the directory is not empty: it has {others[0]}", hint)


def known_options(request: TuneRequest) -> list[str]:
    """Options of `forebay run`: those given, else those of the study."""
    directory = study_directory(request)
    if request.options is not None:
        return request.options
    return Study.open(directory).head.options if has_study(directory) else []


def open_study(request: TuneRequest, script: JobScript) -> Study:
    """The study to write: that of the directory if there is one, else a new one.

    One that holds failed runs only is begun again where it does not fit. TuneError if the one that is there
    is of another script, or was made with other options.
    """
    check_directory(request)
    directory = study_directory(request)
    if not has_study(directory):
        if request.trials is not None:
            raise TuneError(f"{directory}: there is no study to extend", "leave --trials out to begin one")
        return Study.create(directory, _head(request, script))
    study = Study.open(directory, write=True)
    try:
        _check_same(study, request, script)
    except TuneError:
        study.close()
        if any(run.status != "failed" for run in study.runs) or request.trials is not None:
            raise
        # It holds failures only: nothing is lost, and nothing of it fits the call that corrects them.
        for pattern in _MADE_BY_RUNS:
            for path in directory.glob(pattern):
                remove(path)
        return Study.create(directory, _head(request, script))
    return study


def _check_same(study: Study, request: TuneRequest, script: JobScript) -> None:
    head = study.head
    if head.script_digest != script.digest:
        what = "has changed since" if head.script == str(script.path) else f"is not {head.script}"
        message = f"{study.directory}: this study is of another script: {script.path} {what}"
        raise TuneError(message, "--study DIR begins a new one; or remove the directory")
    if head.inherited is not None and head.inherited != script.inherited:
        name = min(dict(head.inherited.items() ^ script.inherited.items()))
        was = _option_text(head.inherited.get(name))
        message = (
            f"{study.directory}: this study was begun with {name} {was}, not {script.inherited.get(name)}"
        )
        raise TuneError(message, f"set {name} in the environment as it was, or begin a new one: --study DIR")
    for name in _FIXED:
        asked, was = getattr(request, name), getattr(head, name)
        if asked is not None and asked != was:
            message = (
                f"{study.directory}: this study was begun with {name} {_option_text(was)}, "
                f"not {_option_text(asked)}"
            )
            raise TuneError(message, "leave the option out to go on with it, or begin a new one: --study DIR")


def _option_text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _head(request: TuneRequest, script: JobScript) -> Head:
    given = {name: getattr(request, name) for name in (*_FIXED, "time_factor", "budget")}
    given = {name: value for name, value in given.items() if value is not None}
    output = request.output or _default_parent(script.path) / f"{script.path.stem}.tuned{script.path.suffix}"
    return Head(
        script=str(script.path),
        script_digest=script.digest,
        inherited=script.inherited,
        started_unix_s=time.time(),
        host=platform.node(),
        seed=random.SystemRandom().randrange(1 << 31) if request.seed is None else request.seed,
        output=str(output.absolute()),
        emulated=machine.name if (machine := emulation(given.get("options", []))) else None,
        **{"budget": Budget(runs=RUNS_DEFAULT), "places": _places(request, script)} | given,
    )


def emulation(options: list[str]) -> Machine | None:
    """The model of the parallel file system that is emulated, if one is."""
    values = dict(zip(options, options[1:], strict=False))
    return read_machine(Path(values["--pfs-model"])) if "--pfs-model" in values else None


def _places(request: TuneRequest, script: JobScript) -> list[Place]:
    """All that the script can run in, the file system first."""
    can: list[Place] = [place for place in PLACES if place == "file-system" or script.burst_buffer]
    for place in request.places or []:
        if place not in can:
            message = f"{script.path}: --on {place}: the script asks for no burst buffer"
            raise TuneError(message, "it needs a line `#DW jobdw ...`, or leave --on out")
    return request.places or can
