"""One run of the job, or of its recorded I/O: from a step to what became of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forebay.profiles import sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Profile
from forebay.series_client import Answer, Request, Series
from forebay.tune import script_forms
from forebay.tune.budget import Clock
from forebay.tune.decide import eligibility
from forebay.tune.decide.statistics import is_beyond_noise
from forebay.tune.errors import TuneError
from forebay.tune.job_script.script import JobScript
from forebay.tune.model import Place, Plan, Run, Step
from forebay.tune.runs import cpu_contention, effect, replay
from forebay.tune.runs.namespace_layout import NamespaceLayout
from forebay.tune.runs.output_check import OutputCheck, Root
from forebay.tune.runs.run_directory import RunDirectory
from forebay.tune.settings.job_view import head_of
from forebay.tune.study import Study

SCRIPT = "script.sh"
OUTPUT = "output.txt"
#: So many lines of a failed run's output are in the message: mpiexec's own come last, up to eight.
LINES_SHOWN_MAX = 14
#: A trial of a job of a second gets so much at least beyond the default's time: starting it takes its time.
LIMIT_EXTRA_S = 10.0
#: A check is begun even if the budget ends while its run does.
CHECK_S_MIN = 1.0
#: Variables of Slurm, PBS and LSF that name the directory a job was submitted in.
_SUBMITTED_IN = ("SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "LS_SUBCWD")


def limit_s(default_s: float, factor: float) -> float:
    """How long a trial may take."""
    return max(factor * default_s, default_s + LIMIT_EXTRA_S)


class Runner:
    """Does the runs of one place, in its series."""

    def __init__(
        self,
        study: Study,
        place: Place,
        series: Series,
        workplace: RunDirectory,
        script: JobScript,
        clock: Clock,
    ) -> None:
        self.study = study
        self.place = place
        self.series = series
        self.workplace = workplace
        self.script = script
        is_mapped = workplace.is_named_in(script.text)
        #: Where runs begin, by the name that the job knows it by.
        self.directory = workplace.source if is_mapped else workplace.directory
        #: With the map a study next to the script is hidden from the job: records are made here, and moved.
        self._scratch = _scratch(study) if is_mapped else None
        self._limit_s: float | None = None  # of the run in hand
        self.clock = clock
        self.judge = self._new_judge()
        self.layout = NamespaceLayout(series.ready)
        self.replayed: JobScript | None = None  # the recorded I/O, once there is a replay
        self.plan: Plan | None = None  # from here on: once the default run is known
        self.form = "library"
        self.default: Profile | None = None
        self.default_replay: Profile | None = None
        self.output_differs = False  # the last run's output was not the default's

    def close(self) -> None:
        """Removes what is not the study's."""
        if self._scratch:
            shutil.rmtree(self._scratch)

    @property
    def is_mapped(self) -> bool:
        """The job sees the directory of runs under the name of its own."""
        return self._scratch is not None

    @property
    def _submitted_in(self) -> dict[str, str]:
        """Where the job was submitted, as a scheduler around us tells it: a job that goes there stays."""
        paths = {name: os.environ.get(name) for name in _SUBMITTED_IN}
        own = self.workplace.source
        return {
            name: str(self.directory) for name, path in paths.items() if path and Path(path).resolve() == own
        }

    @property
    def is_reproducible(self) -> bool:
        """Two runs of the default wrote the same."""
        return len(self._defaults()) > 1 and not self.judge.differs

    def _defaults(self) -> list[Run]:
        runs = self.study.runs_in(self.place)
        return [run for run in runs if not run.configuration and not run.replay and run.status != "failed"]

    def _new_judge(self) -> OutputCheck:
        ready, defaults = self.series.ready, self._defaults()
        roots = [Root(name="", seen=str(self.directory), real=self.workplace.directory)]
        roots += [
            Root(name=name, seen=path.rstrip("/"), real=Path(ready.root + path))
            for name, path in ready.variables.items()
        ]
        return OutputCheck(
            roots,
            check=self._check if self.study.head.check else None,
            reference=self.study.run_directory(defaults[0].number) if defaults else None,
            prefix=ready.root,
        )

    def _check(self) -> int:
        """The user's command, in the place of the job that has just run."""
        assert self.study.head.check is not None
        limits_s = [one for one in (self._limit_s, self.clock.for_run_s()) if one is not None]
        request = Request(
            run=0,
            command=["/bin/sh", "-c", self.study.head.check],
            fresh=False,
            directory=str(self.directory),
            output=str(self.study.directory / "check.txt"),
            time_limit_s=max(CHECK_S_MIN, min(limits_s)) if limits_s else None,
        )
        status = self.series.run(request).job_status
        return 255 if status is None else status

    def head_of(self, path: str) -> bytes:
        """The first bytes of a file that the job sees."""
        return head_of(self.series.ready.root + path)

    def run(self, step: Step, *, limit_s: float | None, trace: bool = False) -> Run:
        """Does the step and returns its Run, failures included. NativeError if it could not be started.

        `limit_s`: it is ended after that.
        """
        number = max((run.number for run in self.study.runs), default=0) + 1
        directory = self._new_directory(number)
        self._write_script(directory, step)
        self.workplace.reset()
        self.output_differs, self._limit_s = False, limit_s
        use = cpu_contention.CpuShare(self.series.process_id)
        run = Run(
            number=number,
            place=self.place,
            phase=step.phase,
            configuration=step.configuration,
            status="ok",
            replay=step.replay,
            started_unix_s=time.time(),
            record=str(self.study.run_directory(number).relative_to(self.study.directory)),
        )
        try:
            if self.plan is not None:
                self.layout.set(self.plan, step.configuration)
        except TuneError as error:
            return _failed(run, str(error))
        answer = self.series.run(self._request(number, directory, limit_s, trace))
        foreign, busy = use.read()
        run.job_s, run.foreign_cpu = answer.job_s, round(foreign, 3)
        if self._scratch:
            directory = Path(shutil.move(directory, self.study.run_directory(number)))
        return self._judged(run, answer, directory, limit_s, busy)

    def _new_directory(self, number: int) -> Path:
        """For the run's record. What a killed tuner left of a run of this number goes."""
        directory = self.study.run_directory(number)
        if directory.exists():
            shutil.rmtree(directory)
        directory.parent.mkdir(exist_ok=True)
        if self._scratch:
            directory = self._scratch / directory.name
        directory.mkdir()
        return directory

    def _write_script(self, directory: Path, step: Step) -> None:
        script = self.replayed if step.replay else self.script
        assert script is not None
        text = script.text
        if self.plan is not None:  # the default, too: it takes back the layout that the run before has set
            text = script_forms.trial_script(script, self.plan, step.configuration, self.form)
        path = directory / SCRIPT
        path.write_bytes(text.encode())
        path.chmod(0o755)

    def _request(self, number: int, directory: Path, limit_s: float | None, trace: bool) -> Request:
        return Request(
            run=number,
            script=str(directory / SCRIPT),
            fresh=True,
            directory=str(self.directory),
            environment=self._submitted_in,
            record=str(directory),
            trace=trace,
            output=str(directory / OUTPUT),
            time_limit_s=limit_s,
        )

    def _judged(self, run: Run, answer: Answer, directory: Path, limit_s: float | None, busy: float) -> Run:
        failure = _failure(answer, directory / OUTPUT, limit_s)
        if failure:
            return _failed(run, failure)
        try:
            profile = sources.open_path(directory)
        except ProfileError as error:
            return _failed(run, f"its record cannot be read: {error}")
        if profile.job.failed_writes:
            failed = profile.job.failed_writes[0]
            return _failed(run, f"a write of {failed.path} failed with {failed.error}")
        run.io_s = self._io_s(run, profile, directory)
        run.seconds = run.io_s if self.study.head.objective == "io" else run.job_s
        if run.seconds is None and (run.configuration or run.phase != "default"):
            return _failed(run, "its I/O was not recorded")
        if not run.replay:
            self._check_output(run, profile, directory)
        if run.status == "ok" and run.configuration:
            self._check_effect(run, profile)
        earlier = [one.foreign_cpu for one in self._earlier(run) if one.foreign_cpu is not None]
        if run.status == "ok" and cpu_contention.is_contaminated(run.foreign_cpu or 0.0, busy, earlier):
            run.status = "contaminated"
            run.reason = f"others had {(run.foreign_cpu or 0) * 100:.0f} % of the processors"
        return run

    def _earlier(self, run: Run) -> Sequence[Run]:
        return [one for one in self.study.runs_in(self.place) if one.replay == run.replay]

    @staticmethod
    def _io_s(run: Run, profile: Profile, directory: Path) -> float | None:
        if not run.replay:
            return eligibility.io_s(profile)
        steps = replay.issued((directory / OUTPUT).read_text(errors="replace"))
        return sum(step.io_s for step in steps) if steps else None

    def _check_output(self, run: Run, profile: Profile, directory: Path) -> None:
        """Is what the job wrote what the default run wrote?"""
        found = self.judge.judge(run, profile, directory)
        run.checked, run.reason = found.checked, found.reason
        self.output_differs = not found.right or bool(self.judge.differs)
        if not found.right:
            run.status, run.seconds = "failed", None

    def _check_effect(self, run: Run, profile: Profile) -> None:
        default = self.default_replay if run.replay else self.default
        assert self.plan is not None and default is not None
        run.without_effect = effect.without_effect(run.configuration, self.plan, default, profile)
        if not set(run.without_effect) >= set(run.configuration):
            return
        if is_beyond_noise(run, self.study.runs_in(self.place), self.plan.confidence):
            run.without_effect = []  # the counters do not show all that a setting does
        else:
            run.status, run.reason = "ineffective", "the counters are those of the default"


def _scratch(study: Study) -> Path:
    """A new directory for records; those of killed tuners of this study go."""
    mark = hashlib.sha256(str(study.directory.resolve()).encode()).hexdigest()[:12]
    for left in Path(tempfile.gettempdir()).glob(f"forebay-tune-{mark}-*"):
        shutil.rmtree(left)
    return Path(tempfile.mkdtemp(prefix=f"forebay-tune-{mark}-"))


def _failed(run: Run, reason: str) -> Run:
    return msgspec.structs.replace(run, status="failed", seconds=None, reason=reason)


def _failure(answer: Answer, output: Path, limit_s: float | None) -> str | None:
    """Why the run does not count; None: it succeeded."""
    if answer.over_time_limit:
        return "it did not end in time" + (f": after {limit_s:.0f} s it was ended" if limit_s else "")
    if answer.unended_processes:
        return f"{len(answer.unended_processes)} of its processes could not be ended"
    if answer.job_status == 0:
        return None
    last = last_lines(output, 1)
    return f"it ended with status {answer.job_status}" + (f": {last[0]}" if last else "")


def last_lines(path: Path, lines: int = LINES_SHOWN_MAX) -> list[str]:
    """The last lines of what a run printed, without rules and blank ones."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        file.seek(max(0, size_bytes - (1 << 14)))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))][-lines:]
