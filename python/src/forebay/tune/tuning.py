"""The phases of a tuning, in order: default run, space, search, proof, tuned script."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from forebay.errors import ForebayError
from forebay.tune import model, result, study_setup
from forebay.tune.budget import Budget, Clock, Share
from forebay.tune.decide import search
from forebay.tune.errors import TuneError
from forebay.tune.job_script import script
from forebay.tune.job_script.script import JobScript
from forebay.tune.listener import PLACE_NAMES, Listener
from forebay.tune.model import Place, Plan, Run, Verdict
from forebay.tune.runs.run_directory import RunDirectory
from forebay.tune.storage_tuning import BudgetOver, StorageTuning
from forebay.tune.study import Reason, Study
from forebay.tune.study_setup import TuneRequest

_KEPT = "what was measured until now is kept; the same command goes on"
_MORE = "a larger --budget, or --trials N, goes on"


def tune(request: TuneRequest, listener: Listener) -> Study:
    """Tunes the job, or resumes its study; returns the study at the end, closed.

    TuneError if it cannot be tuned. At a signal, which must arrive as KeyboardInterrupt, the study is left so
    that the next call goes on with it.
    """
    job = script.read(request.script, study_setup.known_options(request))
    with study_setup.open_study(request, job) as study:
        result.check_writable(study, request)
        with _ending(study):
            reason, message = _carry_out(study, job, request, listener)
            study.append_end(reason, message)
    return study


@contextmanager
def _ending(study: Study) -> Iterator[None]:
    """However it ends, the study tells."""
    try:
        yield
    except KeyboardInterrupt:
        study.append_end("interrupted", "by a signal")
        raise
    except ForebayError as error:
        study.append_end("stopped", str(error))
        raise
    except OSError as error:
        failure = TuneError(f"{error.filename or study.directory}: {error.strerror}", _KEPT)
        study.append_end("stopped", str(failure))
        raise failure from error


def _carry_out(study: Study, job: JobScript, request: TuneRequest, listener: Listener) -> tuple[Reason, str]:
    open_places = [one for one in study.head.places if _is_open(study, one, request)]
    for place in study.head.places:
        if request.budget is not None and place not in open_places:
            listener.notify(f"on {PLACE_NAMES[place]} there is a verdict: --trials N tries more")
    budget = _budget(study, request)
    clock = _clock(study, job, budget)
    if open_places:
        try:
            with _workplace(study, job, listener) as workplace:
                for number, place in enumerate(open_places):
                    share = _share(study, budget, clock, request, open_places[number:])
                    StorageTuning(study, job, workplace, place, share, listener).tune()
        except BudgetOver as over:
            return "budget", str(over)
    result.write(study, job, listener)
    short = [PLACE_NAMES[place] for place, verdict in study.verdicts.items() if verdict.is_cut_short]
    if short:
        return "budget", f"more runs may change the verdict on {' and '.join(short)}; {_MORE}"
    return "done", "each place has its verdict"


def _is_open(study: Study, place: Place, request: TuneRequest) -> bool:
    """A verdict stays, unless more runs are asked for, or are given to one that lacked them."""
    if request.trials is not None or not study.settled(place):
        return True
    return request.budget is not None and study.verdicts[place].is_cut_short


@contextmanager
def _workplace(study: Study, job: JobScript, listener: Listener) -> Iterator[RunDirectory]:
    """The directory of runs. It goes at the end: what it has of the job's is large, and nobody's."""
    output = glob.escape(result.output_path(study).name)
    workplace = RunDirectory(job.path.parent, study.directory, [*study.head.exclude, output])
    workplace.prepare(is_begun=any(run.status != "failed" for run in study.runs))
    for warning in workplace.warnings():
        listener.notify(warning)
    try:
        yield workplace
    finally:
        shutil.rmtree(workplace.directory, ignore_errors=True)


def _budget(study: Study, request: TuneRequest) -> Budget:
    """Of the whole study. So many trials more are a budget of their own; a time counts if it is given."""
    if request.trials is not None:
        given = request.budget or Budget()
        return msgspec.structs.replace(given, runs=len(study.runs) + request.trials)
    return request.budget or study.head.budget


def _clock(study: Study, job: JobScript, budget: Budget) -> Clock:
    """Of the time that is left: all that earlier tuners did counts, and whatever this one does."""
    limit_s = budget.seconds_max(job.nodes)
    return Clock(None if limit_s is None else max(0.0, limit_s - max(study.spent_s(), _job_s(study.runs))))


def _share(
    study: Study, budget: Budget, clock: Clock, request: TuneRequest, places: Sequence[Place]
) -> Share:
    """For the first of the places that are still to come, an equal share of what they have together.

    What an interrupted tuner did in them counts in it, so that the same command shares as it did then; but
    of so many trials more each place has as many, whatever it had before.
    """
    earlier = [] if request.trials is not None else [run for run in study.runs if run.place in places]
    own = [run for run in earlier if run.place == places[0]]
    runs = budget.runs
    if runs is not None:
        together = runs - (len(study.runs) - len(earlier))
        runs = max(0, -(-together // len(places)) - len(own))
    left_s = clock.left_s()
    if left_s is not None:
        left_s = min(left_s, max(0.0, (left_s + _job_s(earlier)) / len(places) - _job_s(own)))
    is_extended = request.trials is not None or request.budget is not None
    return Share(runs=runs, clock=Clock(left_s), is_extended=is_extended)


def _job_s(runs: Sequence[Run]) -> float:
    return sum(run.job_s or 0.0 for run in runs)


class Preview(msgspec.Struct, frozen=True):
    """What the default run alone tells of a place."""

    place: Place
    verdict: Verdict | None  # it is known already, without a search
    plan: Plan | None


def preview(request: TuneRequest, listener: Listener) -> list[Preview]:
    """What would be tried in each place, and why.

    The job is run once in each, as it is; that is kept in the study, and not repeated when it is tuned.
    TuneError as of `tune`.
    """
    job = script.read(request.script, study_setup.known_options(request))
    with study_setup.open_study(request, job) as study, _ending(study):
        try:
            found = [_preview_storage(study, job, request, place, listener) for place in study.head.places]
        except BudgetOver as over:
            raise TuneError(str(over), "give a larger --budget") from over
        study.append_end("stopped", "only looked at what can be set")
    return found


def _preview_storage(
    study: Study, job: JobScript, request: TuneRequest, place: Place, listener: Listener
) -> Preview:
    plan = study.plans.get(place)
    if plan is not None or study.settled(place):
        return Preview(place, study.verdicts.get(place) if plan is None else None, plan)
    budget = _budget(study, request)
    share = _share(study, budget, _clock(study, job, budget), request, study.head.places)
    with _workplace(study, job, listener) as workplace:
        verdict, plan = StorageTuning(study, job, workplace, place, share, listener).preview()
    return Preview(place, verdict, plan)


def best_so_far(directory: Path) -> list[str]:
    """A sentence for each place of a study that has no verdict yet."""
    if not study_setup.has_study(directory):
        return []
    study = Study.open(directory)
    sentences = []
    for place in study.head.places:
        runs = study.runs_in(place)
        found = zip(search.ratios(runs), runs, strict=True)
        tried = [(ratio, run) for ratio, run in found if ratio is not None and run.configuration]
        if tried and not study.settled(place):
            ratio, run = min(tried, key=lambda one: one[0])
            sentences.append(
                f"best so far on {PLACE_NAMES[place]}, not proven: {model.described(run.configuration)}, "
                f"{ratio:.2f} of the default's time"
            )
    return sentences
