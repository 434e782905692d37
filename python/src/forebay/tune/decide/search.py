"""The next step of a search, or its verdict: a pure function of the plan and the runs so far.

The phases: the default; a probe, which shows whether settings reach the application; the guesses of the
rules; the proposals of the strategy, with the default in between as the anchor. In the final round
(final_round.py) the best few and the default take turns, and only these runs decide.
docs/development/decisions/0013-search.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from forebay.tune import strategies
from forebay.tune.decide import final_round
from forebay.tune.decide.statistics import history_of, ratios
from forebay.tune.model import Configuration, Plan, Run, Step, Verdict, described
from forebay.tune.strategies import History

__all__ = ["counted", "next_step", "ratios"]

Canonical = Callable[[Configuration, Plan], Configuration]
Forbidden = Callable[[Configuration, Plan], str | None]

#: Runs between two of the default.
ANCHOR_EVERY = 4
#: An application ignores hints if so many probes, of as many kinds of settings, have no effect.
PROBES_MIN = 2
#: If so many settings failed and none ran, the search ends.
FAILURES_MAX = 5


@dataclass(frozen=True)
class _Search:
    """Where a search stands. `left`: runs that may still be made, for all that is to come."""

    plan: Plan
    runs: tuple[Run, ...]
    history: History
    left: int

    @property
    def replay(self) -> bool:
        return self.plan.confirm_pairs is not None


def next_step(
    plan: Plan,
    runs: Sequence[Run],
    *,
    runs_left: int | None = None,
    canonical: Canonical | None = None,
    forbidden: Forbidden | None = None,
) -> Step | Verdict:
    """What to run next, or how the search ends.

    `runs` are those of one place, in order. `runs_left`: how many more another budget (minutes, node-hours)
    allows; the plan's `runs_max` holds besides. `canonical` and `forbidden` are those of forebay.tune.space.
    """
    search = _search(plan, runs, runs_left, canonical, forbidden)
    step = _step(search)
    if isinstance(step, Step) and search.left <= 0:
        return final_round.cut_short("another run: nothing better than the default could be looked for")
    again = isinstance(step, Step) and runs and runs[-1].status == "contaminated"
    if again and runs[-1].configuration == step.configuration and step.phase != "final":
        return msgspec.structs.replace(
            step, phase="repeat", reason="once more, since the last run was disturbed"
        )
    return step


def counted(plan: Plan, runs: Sequence[Run], run: Run) -> Run:
    """The run as it counts after `runs`. A contaminated run does not, so that its step comes again.

    After a fifth of all runs the disturbance is taken for the machine's usual state, and runs count.
    """
    is_usual = sum(one.status == "contaminated" for one in runs) >= max(2, plan.runs_max // 5)
    return msgspec.structs.replace(run, status="ok") if is_usual and run.status == "contaminated" else run


def _search(
    plan: Plan,
    runs: Sequence[Run],
    runs_left: int | None,
    canonical: Canonical | None,
    forbidden: Forbidden | None,
) -> _Search:
    if canonical is None or forbidden is None:
        from forebay.tune import space

        canonical, forbidden = canonical or space.canonical, forbidden or space.forbidden
    left = plan.runs_max - len(runs)
    kept = tuple(run for run in runs if run.status != "contaminated")
    history = history_of(plan, kept, lambda one: canonical(one, plan), lambda one: forbidden(one, plan))
    return _Search(plan, kept, history, left if runs_left is None else min(left, runs_left))


def _step(search: _Search) -> Step | Verdict:
    ended = _default(search) or _early_end(search)
    if ended is not None:
        return ended
    is_begun = final_round.begun(search.history, search.runs, search.left)
    lacks_finalist = (
        search.left > 0 and search.history.trials and not final_round.is_wanted(search.history, search.runs)
    )
    if not is_begun or lacks_finalist:
        step = _anchor(search) or _other_probe(search) or _new(search)
        if step is not None:
            return step
    found = final_round.step(search.history, search.runs, search.left)
    if isinstance(found, Verdict) and not found.recommended and _new(search) is not None:
        return msgspec.structs.replace(found, is_cut_short=True)
    return found


def _new(search: _Search) -> Step | None:
    """What was not tried yet; None: there is no more."""
    return _guess(search) or _proposed(search)


def _default(search: _Search) -> Step | Verdict | None:
    """The default first: of the job, and with a replay also of its recorded I/O. Once more if it fails."""
    for replay in (False, True) if search.replay else (False,):
        defaults = [run for run in search.runs if not run.configuration and run.replay == replay]
        if any(run.status != "failed" for run in defaults):
            continue
        if len(defaults) > 1:
            return Verdict(
                recommended={}, reason=f"the default fails: {defaults[-1].reason or 'no reason is known'}"
            )
        what = "the recorded I/O of the default" if replay else "the job as it is"
        return Step(configuration={}, phase="default", reason=what, replay=replay)
    return None


def _early_end(search: _Search) -> Verdict | None:
    """Reasons to end before the runs are used up."""
    tried = search.history.trials
    if not search.plan.parameters:
        return Verdict(recommended={}, reason="there is no setting that may be tried")
    ran = [trial for trial in tried if trial.ratio is not None]
    if _is_ignored(search) and len(ran) >= PROBES_MIN and _probe_of_other_family(search) is None:
        what = "; ".join(described(trial.configuration) for trial in ran)
        reason = (
            f"the application ignores hints: its counters and its time are those of the default with {what}"
        )
        return Verdict(recommended={}, reason=reason)
    if not ran and len(tried) >= FAILURES_MAX:
        why = next(run.reason for run in reversed(search.runs) if run.status == "failed")
        reason = f"all of the first {len(tried)} settings failed; the last one: {why or 'no reason is known'}"
        return Verdict(recommended={}, reason=reason)
    return None


def _is_ignored(search: _Search) -> bool:
    """Whether settings were tried, and none had an effect."""
    ran = [trial for trial in search.history.trials if trial.ratio is not None]
    return bool(ran) and not any(trial.effective for trial in ran)


def _families(search: _Search, configuration: Configuration) -> set[str]:
    """Kinds of the settings: those of one kind may lack an effect for one reason."""
    settings = {one.name: one.setting for one in search.plan.parameters}
    known = {settings[name] for name in configuration if name in settings}
    return {"cb" if "cb_" in one else one.removeprefix("romio_").split("_")[0] for one in known}


def _probe_of_other_family(search: _Search) -> Configuration | None:
    """The first to try of a kind of setting that no trial has had; None: at least two kinds were tried, or
    there is no other."""
    tried = set().union(*(_families(search, trial.configuration) for trial in search.history.trials))
    if len(tried) >= PROBES_MIN:
        return None
    guessed = [guess.configuration for guess in search.plan.guesses]
    single = [{one.name: value} for one in search.plan.parameters for value in reversed(one.values)]
    usable = (search.history.usable(one) for one in (*guessed, *single))
    return next((one for one in usable if one and _families(search, one) - tried), None)


def _other_probe(search: _Search) -> Step | None:
    """After a probe without effect: does another kind of setting reach the application?"""
    new = _probe_of_other_family(search) if _is_ignored(search) else None
    if new is None:
        return None
    reason = "the last probe had no effect: another kind of setting"
    return Step(configuration=new, phase="probe", reason=reason, replay=search.replay)


def _anchor(search: _Search) -> Step | None:
    """The default once more, every few runs."""
    mine = [run for run in search.runs if run.replay == search.replay]
    since = next((n for n, run in enumerate(reversed(mine)) if not run.configuration), 0)
    if since < ANCHOR_EVERY:
        return None
    return Step(configuration={}, phase="anchor", reason="the default once more", replay=search.replay)


def _guess(search: _Search) -> Step | None:
    """The rules' guesses, the surest first; the first one that runs is the probe."""
    ran = any(trial.ratio is not None for trial in search.history.trials)
    for guess in search.plan.guesses[: max(2, search.plan.runs_max // 4)]:
        new = search.history.usable(guess.configuration)
        if new is not None:
            phase = "guess" if ran else "probe"
            return Step(configuration=new, phase=phase, reason=guess.reason, replay=search.replay)
    return None


def _proposed(search: _Search) -> Step | None:
    strategy = strategies.named(search.plan.strategy)
    new = strategy.propose(search.history, search.plan.seed)
    if new is None:
        return None
    ran = any(trial.ratio is not None for trial in search.history.trials)
    reason = f"proposed by {search.plan.strategy}"
    return Step(configuration=new, phase="search" if ran else "probe", reason=reason, replay=search.replay)
