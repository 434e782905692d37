"""One run of the job, or of its recorded I/O: from a step to what became of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forebay.native import Answer, Request, Series
from forebay.profiles import sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Profile
from forebay.tune import effect, forms, processors, replay, worth
from forebay.tune.model import Configuration, Place, Plan, Run, Step
from forebay.tune.outputs import Judge
from forebay.tune.script import JobScript
from forebay.tune.study import Objective, Study
from forebay.tune.workplace import Workplace

SCRIPT = "script.sh"
OUTPUT = "output.txt"
#: Of what a failed run printed, so many lines are told.
LINES_TOLD_MAX = 5
#: A trial of a job of a second gets so much at least beyond the default's time: starting it takes its time.
LIMIT_EXTRA_S = 10.0


class Runner:
    """Does the runs of one place, in its series."""

    def __init__(
        self, study: Study, place: Place, series: Series, workplace: Workplace, judge: Judge, script: JobScript
    ) -> None:
        self.study = study
        self.place = place
        self.series = series
        self.workplace = workplace
        self.judge = judge
        self.script = script
        self.replayed: JobScript | None = None  # the recorded I/O, once there is a replay
        self.plan: Plan | None = None  # from here on: once the default run is known
        self.form = "library"
        self.default: Profile | None = None
        self.default_replay: Profile | None = None

    def run(self, step: Step, *, limit_s: float | None, trace: bool = False) -> Run:
        """Does the step; what it was is told by the Run, failures too. NativeError if it could not be begun.

        `limit_s`: it is ended after that.
        """
        number = max((run.number for run in self.study.runs), default=0) + 1
        directory = self._directory(number)
        self._write_script(directory, step)
        self.workplace.reset()
        use = processors.Use(self.series.process_id)
        run = Run(
            number=number,
            place=self.place,
            phase=step.phase,
            configuration=step.configuration,
            status="ok",
            replay=step.replay,
            started_unix_s=time.time(),
            record=str(directory.relative_to(self.study.directory)),
        )
        answer = self.series.run(self._request(number, directory, limit_s, trace))
        foreign, busy = use.read()
        run.job_s, run.foreign_cpu = answer.job_s, round(foreign, 3)
        return self._judged(run, answer, directory, limit_s, busy)

    def _directory(self, number: int) -> Path:
        """What a killed tuner left of a run of this number goes."""
        directory = self.study.run_directory(number)
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        return directory

    def _write_script(self, directory: Path, step: Step) -> None:
        script = self.replayed if step.replay else self.script
        assert script is not None
        text = script.text
        if step.configuration:
            assert self.plan is not None
            text = forms.trial_script(script, self.plan, step.configuration, self.form)
        path = directory / SCRIPT
        path.write_bytes(text.encode())
        path.chmod(0o755)

    def _request(self, number: int, directory: Path, limit_s: float | None, trace: bool) -> Request:
        return Request(
            run=number,
            script=str(directory / SCRIPT),
            fresh=True,
            directory=str(self.workplace.directory),
            record=str(directory),
            trace=trace,
            output=str(directory / OUTPUT),
            time_limit_s=limit_s,
        )

    def _judged(
        self, run: Run, answer: Answer, directory: Path, limit_s: float | None, busy: float
    ) -> Run:
        failure = _failure(answer, directory / OUTPUT, limit_s)
        if failure:
            return _failed(run, failure)
        try:
            profile = sources.open_path(directory)
        except ProfileError as error:
            return _failed(run, f"its record cannot be read: {error}")
        run.io_s = self._io_s(run, profile, directory)
        run.seconds = run.io_s if self.study.head.objective == "io" else run.job_s
        if run.seconds is None:
            return _failed(run, "its I/O was not recorded")
        if not run.replay:
            self._check_output(run, profile, directory)
        if run.status == "ok" and run.configuration:
            self._look_for_effect(run, profile)
        earlier = [one.foreign_cpu for one in self._earlier(run) if one.foreign_cpu is not None]
        if run.status == "ok" and processors.is_contaminated(run.foreign_cpu or 0.0, busy, earlier):
            run.status = "contaminated"
            run.reason = f"others had {(run.foreign_cpu or 0) * 100:.0f} % of the processors"
        return run

    def _earlier(self, run: Run) -> Sequence[Run]:
        return [one for one in self.study.runs_in(self.place) if one.replay == run.replay]

    @staticmethod
    def _io_s(run: Run, profile: Profile, directory: Path) -> float | None:
        if not run.replay:
            return worth.io_s(profile)
        steps = replay.issued((directory / OUTPUT).read_text(errors="replace"))
        return sum(step.io_s for step in steps) if steps else None

    def _check_output(self, run: Run, profile: Profile, directory: Path) -> None:
        """Is what the job wrote what the default run wrote?"""
        found = self.judge.judge(run, profile, directory)
        run.checked = found.checked
        if not found.right:
            run.status, run.seconds, run.reason = "failed", None, found.reason

    def _look_for_effect(self, run: Run, profile: Profile) -> None:
        default = self.default_replay if run.replay else self.default
        assert self.plan is not None and default is not None
        run.without_effect = effect.without_effect(run.configuration, self.plan, default, profile)
        if set(run.without_effect) >= set(run.configuration):
            run.status, run.reason = "ineffective", "the counters are those of the default"


def _failed(run: Run, reason: str) -> Run:
    return msgspec.structs.replace(run, status="failed", seconds=None, reason=reason)


def _failure(answer: Answer, output: Path, limit_s: float | None) -> str | None:
    """Why the run does not count; None: it ended well."""
    if answer.over_time_limit:
        return "it did not end in time" + (f": after {limit_s:.0f} s it was ended" if limit_s else "")
    if answer.unended_processes:
        return f"{answer.unended_processes} of its processes could not be ended"
    if answer.job_status == 0:
        return None
    last = last_lines(output, 1)
    return f"it ended with status {answer.job_status}" + (f": {last[0]}" if last else "")


def last_lines(path: Path, lines: int = LINES_TOLD_MAX) -> list[str]:
    """The last lines with anything in them of what a run printed."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        file.seek(max(0, size_bytes - (1 << 14)))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]


def described(configuration: Configuration) -> str:
    """As one says it on a line."""
    return ", ".join(f"{name}={value}" for name, value in sorted(configuration.items())) or "the default"
