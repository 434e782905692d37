"""The study file: all that was decided and measured, one JSON object a line.

The format is in docs/explanation/tuner.md, "The study file".

Each line is written whole and synced before the next thing is done. A last line without its end is what a
killed tuner was writing: readers pass it over, the next writer removes it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Literal

import msgspec

from forebay.profiles import regular_file
from forebay.tune.budget import Budget
from forebay.tune.errors import TuneError
from forebay.tune.model import Place, Plan, Run, Verdict

FORMAT = 1
FILE_NAME = "study.jsonl"
_HEAD_BEGINS = b'{"forebay_tune":'

#: Why a tuner ended. done: each place has its verdict. stopped: there is nothing to tune, or the job fails.
Reason = Literal["done", "budget", "interrupted", "stopped"]
Objective = Literal["job", "io"]


class Head(msgspec.Struct, kw_only=True):
    """The first line: what is tuned, and how. A study is continued only with the same."""

    forebay_tune: int = FORMAT
    script: str
    script_digest: str
    arguments: list[str] = []
    objective: Objective = "io"
    replay: bool = False
    traces: list[str] = []  # with replay: of these programs, in place of traces of the default run
    think: float = 0.0  # with replay: share of the time between calls that is waited
    check: str | None = None
    started_unix_s: float
    emulated: str | None = None
    host: str
    seed: int
    places: list[Place] = []
    strategy: str = "tpe"
    budget: Budget = Budget()  # of the study as a whole
    time_factor: float = 5.0  # a trial may take so many times as long as the default
    options: list[str] = []  # of `forebay run`, that each run had
    exclude: list[str] = []  # what is not copied to the directory of the runs
    output: str | None = None  # the tuned script's path
    inherited: dict[str, str] | None = None  # variables with hints that the environment had


class End(msgspec.Struct, kw_only=True):
    """Why the tuner ended, each time it did."""

    reason: Reason
    message: str
    spent_s: float | None = None  # that the study's tuners had run for


class Written(msgspec.Struct, kw_only=True):
    """A tuned script that was written: so that one which somebody changed since is not overwritten."""

    path: str
    digest: str


class PlanLine(msgspec.Struct, kw_only=True):
    """The plan of the search in a place."""

    place: Place
    plan: Plan


class VerdictLine(msgspec.Struct, kw_only=True):
    """How the search in a place ended."""

    place: Place
    verdict: Verdict


class StudyLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line after the first: one member, which names it."""

    plan: PlanLine | None = None
    run: Run | None = None
    verdict: VerdictLine | None = None
    written: Written | None = None
    end: End | None = None


class Study:
    """One study, in its directory. Made by `create` and `open`; `close`, or `with`, lets others write."""

    def __init__(self, directory: Path, head: Head) -> None:
        self.directory = directory
        self.head = head
        self.plans: dict[Place, Plan] = {}
        self.runs: list[Run] = []
        self.verdicts: dict[Place, Verdict] = {}
        self.written: list[Written] = []
        self.ends: list[End] = []
        self._settled: set[Place] = set()
        self._file: IO[bytes] | None = None
        self._end_bytes = 0
        self._earlier_s, self._opened_s = 0.0, time.monotonic()

    @classmethod
    def create(cls, directory: Path, head: Head) -> Study:
        """A new one. TuneError if there is one, or it cannot be written."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            file = regular_file.open_file(directory / FILE_NAME, "a+b", flags)
        except OSError as error:
            raise TuneError(
                f"{directory}: {error.strerror}", "--study DIR puts the study elsewhere"
            ) from error
        study = cls(directory, head)
        study._file = file
        try:
            _lock(directory, file)
            file.seek(0)
            content = file.read()
            if b"\n" in content:
                raise TuneError(f"{directory}: there is a study already")
            if not (content.startswith(_HEAD_BEGINS) or _HEAD_BEGINS.startswith(content)):
                raise _no_study(directory / FILE_NAME)
        except BaseException:
            study.close()
            raise
        study._write(msgspec.json.encode(head))
        _sync_directory(directory)
        return study

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Study:
        """That of a directory, or of its file.

        TuneError if there is none, if it is damaged or newer than this reader, and, with `write`, while
        another tuner writes it.
        """
        directory = path if path.is_dir() else path.parent
        name = directory / FILE_NAME
        try:
            how = ("r+b", os.O_RDWR) if write else ("rb", os.O_RDONLY)
            file = regular_file.open_file(name, *how)
        except OSError as error:
            raise TuneError(f"{name}: {error.strerror}", "`forebay tune JOB.sh` makes a study") from error
        try:
            if write:
                _lock(directory, file)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            lines = whole.splitlines()
            study = cls(directory, _head(name, lines))
            for number, line in enumerate(lines[1:], start=2):
                study._take(_decoded(name, number, line))
            study._earlier_s = max((one.spent_s or 0.0 for one in [*study.runs, *study.ends]), default=0.0)
        except BaseException:
            file.close()
            raise
        if write:
            study._file, study._end_bytes = file, len(whole)
        else:
            file.close()
        return study

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is written any more; what was read stays."""
        if self._file:
            self._file.close()
            self._file = None

    def append_plan(self, place: Place, plan: Plan) -> None:
        """The plan of the search in a place from now on; an earlier verdict no longer ends it."""
        self._append(StudyLine(plan=PlanLine(place=place, plan=plan)))

    def append_run(self, run: Run) -> None:
        """A run that ended, however it did."""
        self._append(StudyLine(run=msgspec.structs.replace(run, spent_s=self.spent_s())))

    def append_verdict(self, place: Place, verdict: Verdict) -> None:
        """How the search ended."""
        self._append(StudyLine(verdict=VerdictLine(place=place, verdict=verdict)))

    def append_written(self, path: Path, digest: str) -> None:
        """A tuned script that stands there now."""
        self._append(StudyLine(written=Written(path=str(path), digest=digest)))

    def append_end(self, reason: Reason, message: str) -> None:
        """Why the tuner ends."""
        self._append(StudyLine(end=End(reason=reason, message=message, spent_s=self.spent_s())))

    def spent_s(self) -> float:
        """Seconds that its tuners have run for, this one included; a killed one until its last whole run."""
        return self._earlier_s + time.monotonic() - self._opened_s

    def runs_in(self, place: Place) -> list[Run]:
        """Those of one place, in order."""
        return [run for run in self.runs if run.place == place]

    def settled(self, place: Place) -> bool:
        """Has a verdict on its latest plan."""
        return place in self._settled

    def run_directory(self, number: int) -> Path:
        """Where run `number` has its record, its script and what it printed."""
        return self.directory / "runs" / f"{number:04d}"

    def _append(self, line: StudyLine) -> None:
        self._write(msgspec.json.encode(line))
        self._take(line)

    def _take(self, line: StudyLine) -> None:
        if line.run:
            self.runs.append(line.run)
        if line.plan:
            self.plans[line.plan.place] = line.plan.plan
            self._settled.discard(line.plan.place)
        if line.verdict:
            self.verdicts[line.verdict.place] = line.verdict.verdict
            self._settled.add(line.verdict.place)
        if line.written:
            self.written.append(line.written)
        if line.end:
            self.ends.append(line.end)

    def _write(self, line: bytes) -> None:
        """What an interrupted call left behind the last whole line goes first."""
        if self._file is None:
            raise TuneError(f"{self.directory}: opened to be read")
        try:
            self._file.truncate(self._end_bytes)
            self._file.seek(self._end_bytes)
            self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise TuneError(
                f"{self.directory / FILE_NAME}: {error.strerror}", "what was measured until now is kept"
            ) from error
        self._end_bytes += len(line) + 1


class _Version(msgspec.Struct):
    forebay_tune: int


def _no_study(name: Path) -> TuneError:
    return TuneError(f"{name}: no study of forebay tune", "remove it, or give --study DIR")


def _head(name: Path, lines: list[bytes]) -> Head:
    if not lines:
        raise _no_study(name)
    try:
        version = msgspec.json.decode(lines[0], type=_Version).forebay_tune
    except msgspec.MsgspecError as error:
        raise _no_study(name) from error
    if version > FORMAT:
        message = f"{name}: a study of format {version}; this forebay knows formats up to {FORMAT}"
        raise TuneError(message, "use the forebay that made it, or a newer one")
    try:
        return msgspec.json.decode(lines[0], type=Head)
    except msgspec.MsgspecError as error:
        raise TuneError(f"{name}: line 1: {error}", "remove it, or give --study DIR") from error


def _decoded(name: Path, number: int, line: bytes) -> StudyLine:
    try:
        return msgspec.json.decode(line, type=StudyLine)
    except msgspec.MsgspecError as error:
        hint = "the file is damaged: remove the line if you know why, or give --study DIR"
        raise TuneError(f"{name}: line {number}: {error}", hint) from error


def _lock(directory: Path, file: IO[bytes]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = f"{directory}: another forebay tune is writing this study"
        raise TuneError(message, "wait for it, or end it") from error


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
