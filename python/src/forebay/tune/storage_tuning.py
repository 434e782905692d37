"""The tuning of one place: its default run, what can be set there, the search, the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from forebay.profiles import sources
from forebay.profiles.model import Profile
from forebay.series_client import Series
from forebay.tune import script_forms, space, study_setup
from forebay.tune.budget import ROOM, Share
from forebay.tune.decide import eligibility, final_round, job_time_gain, search
from forebay.tune.errors import TuneError
from forebay.tune.job_script import script
from forebay.tune.job_script.script import JobScript
from forebay.tune.listener import PLACE_NAMES, Listener
from forebay.tune.model import Place, Plan, Run, Step, Verdict
from forebay.tune.runs import replay
from forebay.tune.runs.run_directory import RunDirectory
from forebay.tune.runs.trial_runner import OUTPUT, Runner, last_lines, limit_s
from forebay.tune.settings.namespace_layout import is_over_nodes
from forebay.tune.study import Study

#: Runs of a plan whose budget is only a time that would suffice for more.
RUNS_MAX = 100
#: Pairs of runs of the real job that confirm what a search on its recorded I/O found.
CONFIRM_PAIRS = 2


class BudgetOver(Exception):
    """The budget is over before the place has a verdict."""


class StorageTuning:
    """All that is done in one place; the study has every run of it as soon as it has ended."""

    def __init__(
        self,
        study: Study,
        job: JobScript,
        workplace: RunDirectory,
        place: Place,
        share: Share,
        listener: Listener,
    ) -> None:
        self.study = study
        self.job = job
        self.workplace = workplace
        self.place: Place = place
        self.share = share
        self.listener = listener
        self.runs_max = RUNS_MAX if share.runs is None else len(self._runs()) + share.runs
        self.runner: Runner

    def tune(self) -> None:
        """Until the place has a verdict. TuneError if the job cannot be tuned; BudgetOver."""
        self._check_replay()
        with self._series():
            self._run_default()
            verdict = self._first_verdict()
            if verdict is None:
                earlier, before = self.study.verdicts.get(self.place), len(self._runs())
                self._plan()
                verdict = self._search()
                is_shown = earlier is not None and earlier.recommended and not verdict.recommended
                if is_shown and not final_round.contradicts(self._runs()[before:], earlier.recommended):
                    self.listener.notify("no new final round contradicts the last one: what it showed stays")
                    verdict = earlier
        self.study.append_verdict(self.place, verdict)

    def preview(self) -> tuple[Verdict | None, Plan | None]:
        """What the default run alone tells: a verdict, or what would be tried."""
        with self._series():
            self._run_default()
            verdict = self._first_verdict()
            return verdict, None if verdict else self._new_plan()

    @contextmanager
    def _series(self) -> Iterator[None]:
        self.listener.storage_started(self.place)
        log = self.study.directory / "forebay.log"
        options = series_options(self.study, self.place, self.workplace, self.job)
        with Series(options, self.job.path, log=log, arguments=self.study.head.arguments) as series:
            self.runner = Runner(self.study, self.place, series, self.workplace, self.job, self.share.clock)
            try:
                yield
            finally:
                self.runner.close()

    def _runs(self) -> list[Run]:
        return self.study.runs_in(self.place)

    def _run(self, step: Step, *, is_default: bool = False) -> Run:
        """Does the step; its run is in the study before anything else is done."""
        self.listener.run_started(len(self._runs()) + 1, self.runs_max, step)
        most_s = self._first_limit_s() if is_default else self._limit_s(step)
        run = self.runner.run(step, limit_s=most_s, trace=is_default and self._is_to_be_traced())
        if self.runner.plan is not None:
            run = search.counted(self.runner.plan, self._runs(), run)
        self.study.append_run(run)
        self._report_run(run)
        return run

    def _is_to_be_traced(self) -> bool:
        return self.study.head.replay and not self.study.head.traces

    def _report_run(self, run: Run) -> None:
        found = search.ratios(self._runs())
        shown = zip(self._runs(), found, strict=True)
        tried = [one for other, one in shown if one is not None and other.configuration]
        self.listener.run_ended(run, found[-1], min(tried, default=None))

    # -- the default run

    def _run_default(self) -> None:
        """Unless an earlier tuner did it. Its profile, and its output, are what others are held against."""
        default = self._default()
        if default is None:
            if self.runs_max <= len(self._runs()) or self.share.clock.for_run_s() == 0:
                raise BudgetOver(f"the budget is over before a run on {PLACE_NAMES[self.place]}")
            step = Step(configuration={}, phase="default", reason="the job as it is")
            default = self._run(step, is_default=True)
            if default.status == "failed" and self.share.clock.for_run_s() == 0:
                raise BudgetOver(
                    f"the budget is over before the job as it is has ended on {PLACE_NAMES[self.place]}"
                )
            if default.status == "failed":
                raise self._default_failed(default)
        self.runner.default = self._profile(default)
        eligibility.check_programs(self.runner.default)
        variables = self.runner.series.ready.variables
        if not self.runner.is_mapped:
            eligibility.check_own_directory(
                self.runner.default, self.workplace.source, self.workplace.directory, variables
            )
        if default.seconds is None:
            message = "not every MPI program of the job tells its I/O time"
            raise TuneError(message, "--objective job compares run times")
        self.runner.form = script_forms.choose(self.runner.default)
        warnings = eligibility.warnings(
            self.runner.default, self.runner.directory, self.workplace.directory, variables
        )
        for warning in warnings:
            self.listener.notify(warning)

    def _default(self, *, replayed: bool = False) -> Run | None:
        runs = (run for run in self._runs() if not run.configuration and run.replay == replayed)
        return next((run for run in runs if run.status != "failed"), None)

    def _first_limit_s(self) -> float | None:
        """Of a run of unknown length: the script's own limit, and the rest of the budget."""
        limits_s = [one for one in (self.job.time_limit_s, self.share.clock.for_run_s()) if one is not None]
        return min(limits_s, default=None)

    def _default_failed(self, run: Run) -> TuneError:
        output = self.study.run_directory(run.number) / OUTPUT
        said = "".join(f"\n  {line}" for line in last_lines(output))
        return TuneError(
            f"the job as it is does not succeed on {PLACE_NAMES[self.place]}: {run.reason}{said}",
            f"all that it printed is in {output}; it runs in a copy of {self.job.path.parent}",
        )

    def _profile(self, run: Run) -> Profile:
        return sources.open_path(self.study.run_directory(run.number))

    def _first_verdict(self) -> Verdict | None:
        """What the default run alone decides."""
        assert self.runner.default is not None
        reason = eligibility.nothing_to_gain(self.runner.default)
        return Verdict(recommended={}, reason=reason) if reason else None

    # -- the plan

    def _plan(self) -> None:
        plan = self.study.plans.get(self.place)
        if plan is None or self.share.is_extended:
            by_time = self._runs_left()
            if by_time is not None:
                self.runs_max = min(self.runs_max, len(self._runs()) + by_time)
            new = plan or self._new_plan()
            plan = msgspec.structs.replace(new, runs_max=self.runs_max)
            self.study.append_plan(self.place, plan)
        self.runner.plan, self.runs_max = plan, plan.runs_max
        if self.study.head.replay:
            self._prepare_replay()

    def _new_plan(self) -> Plan:
        assert self.runner.default is not None
        head = self.study.head
        emulated = study_setup.emulation(head.options)
        default = self.runner.default
        found = space.build(
            default,
            self.job,
            self.place,
            layout_may_change=self.runner.judge.knows_contents and not head.replay,
            stripe_targets=emulated.targets if emulated else None,
            namespace=self.runner.layout.now() if is_over_nodes(default) else None,
            head_of=self.runner.head_of,
        )
        return Plan(
            parameters=found.parameters,
            refusals=found.refusals,
            guesses=found.guesses,
            machine=found.machine,
            strategy=head.strategy,
            seed=head.seed,
            runs_max=self.runs_max,
            confirm_pairs=CONFIRM_PAIRS if head.replay else None,
        )

    def _check_replay(self) -> None:
        if self.study.head.replay and self.workplace.is_named_in(self.job.text):
            raise TuneError(
                f"{self.job.path}: a job that names its own directory, or the one above, cannot be replayed",
                "write the script with paths relative to its directory, or do without --replay",
            )

    def _prepare_replay(self) -> None:
        """The script that issues the default run's I/O again, unless an earlier tuner wrote it."""
        path = self.study.directory / "trace" / f"{self.place}.sh"
        if not path.exists():
            assert self.runner.default is not None
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                replay.script_text(
                    self.runner.default,
                    self.runner.directory,
                    self.runner.series.ready.variables,
                    self.study.head.think,
                    [Path(trace) for trace in self.study.head.traces],
                    {one.variable: one.value for one in self.job.assignments if not one.is_nested},
                )
            )
        self.runner.replayed = script.read(path)
        default = self._default(replayed=True)
        if default:
            self.runner.default_replay = self._profile(default)

    # -- the search

    def _search(self) -> Verdict:
        plan = self.runner.plan
        assert plan is not None
        while True:
            left = self._runs_left()
            if left == 0 and plan.parameters and not any(run.configuration for run in self._runs()):
                raise BudgetOver(
                    f"the budget is over before a setting was tried on {PLACE_NAMES[self.place]}"
                )
            step = search.next_step(plan, self._runs(), runs_left=left)
            if isinstance(step, Verdict):
                break
            run = self._run(step)
            if run.replay and not run.configuration:
                self._check_replay_run(run)
            self._check_output(run)
        if self.study.head.objective == "io":
            return job_time_gain.with_job_time(step, self._runs(), plan.confidence)
        return step

    def _runs_left(self) -> int | None:
        """So many runs the time that is left allows; with a replay most are short, but those that confirm."""
        left_s, job_s = self.share.clock.for_run_s(), self._longest_s(replayed=False)
        if left_s is None or job_s is None:
            return None
        if left_s < ROOM * job_s:
            return 0
        replay_s, confirming = self._longest_s(replayed=True), 2 * CONFIRM_PAIRS
        if replay_s is None or left_s < confirming * job_s:
            return int(left_s // job_s)
        return confirming + int((left_s - confirming * job_s) // replay_s)

    def _longest_s(self, *, replayed: bool) -> float | None:
        defaults = [run for run in self._runs() if not run.configuration and run.replay == replayed]
        return max((run.job_s for run in defaults if run.status != "failed" and run.job_s), default=None)

    def _limit_s(self, step: Step) -> float | None:
        default_s = self._longest_s(replayed=step.replay) or self._longest_s(replayed=False)
        assert default_s is not None
        most_s = limit_s(default_s, self.study.head.time_factor)
        left_s = self.share.clock.for_run_s()
        return most_s if left_s is None else min(most_s, left_s)

    def _check_replay_run(self, run: Run) -> None:
        """The first one says whether the replay is a fair picture of the job; one that is refused ends it."""
        output = self.study.run_directory(run.number) / OUTPUT
        if run.status == "failed":
            said = replay.refusal(output.read_text(errors="replace")) if output.exists() else None
            why = said or run.reason or "no reason is known"
            raise TuneError(f"the recorded I/O cannot be issued: {why}", replay.remedy(why))
        if self.runner.default_replay is None:
            self.runner.default_replay = self._profile(run)
            default = self._default()
            assert default is not None
            self.listener.notify(replay.resemblance(default.io_s or 0.0, run.io_s or 0.0))

    def _check_output(self, run: Run) -> None:
        """A differing output is the setting's fault only if the default's is always the same."""
        if run.configuration and self.runner.output_differs:
            is_known = (
                self.study.head.check or self.runner.judge.knows_contents or self.runner.is_reproducible
            )
            if is_known or self._runs_left() == 0 or len(self._runs()) >= self.runs_max:
                return
            step = Step(configuration={}, phase="anchor", reason="does its output differ from run to run?")
            run = self._run(step)
        if run.configuration or not self.runner.judge.differs:
            return
        raise TuneError(
            f"the job's output differs from run to run: {', '.join(self.runner.judge.differs)}",
            "--check COMMAND says by its exit status whether the output is right; "
            "h5diff compares what two HDF5 files hold",
        )


def series_options(study: Study, place: Place, workplace: RunDirectory, job: JobScript) -> list[str]:
    """Options of the series: those of the user's, and what the place and the directory of the runs need."""
    options = list(study.head.options)
    if place == "file-system" and job.burst_buffer:
        options.append("--no-burst-buffer")
    is_mapped = workplace.is_named_in(job.text)
    if "--pfs-dir" not in options:
        options += ["--pfs-dir", str(workplace.pfs_directory(is_mapped=is_mapped))]
    if "--pfs-model" in options:
        options += emulated_roots(options, job.path.parent, workplace.directory)
    if is_mapped:
        options += workplace.map_options
    return options


def emulated_roots(options: list[str], job_directory: Path, runs: Path) -> list[str]:
    """The directory of the runs is emulated where the job's own would be."""
    roots = [Path(value) for name, value in zip(options, options[1:], strict=False) if name == "--pfs-root"]
    if not roots:
        pfs = dict(zip(options, options[1:], strict=False))["--pfs-dir"]
        return ["--pfs-root", str(job_directory), "--pfs-root", str(runs), "--pfs-root", pfs]
    is_emulated = any(job_directory.is_relative_to(root.absolute()) for root in roots)
    return ["--pfs-root", str(runs)] if is_emulated else []
