"""The final round: the best few and the default in turn, forth and back, and the verdict from these runs alone."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence

from forebay.tune.model import Configuration, Pairing, Plan, Run, Step, Verdict, key
from forebay.tune.statistics import counts, disturbed, pairing, relative_logs, trials
from forebay.tune.strategies import History, Trial

#: What is not at least this much faster in its single run does not come to the final round.
CANDIDATE_RATIO = 0.99
#: A gain below this is not worth a line in a script, however sure it is.
GAIN_MIN = 1.02
ROUNDS_MAX = int(os.environ.get("RM", "5"))
E = lambda n, d: float(os.environ.get(n, d))
PAIRS_MIN = 2
PAIRS_MAX = 5
FINALISTS = int(E("FIN", 2))
DEVIATION_LIKELY = E("DL", 0.05)
STUDENT_LIKELY = E("SL", 3.0)
SHARE_MAX = E("SM", 0.5)
#: Runs that the shortest final round takes: two pairs.
RUNS_MIN = 4


def candidates(tried: Sequence[Trial]) -> list[Trial]:
    """What may be better than the default, the fastest first."""
    found = [t for t in tried if t.ratio is not None and t.effective and t.ratio <= CANDIDATE_RATIO]
    return sorted(found, key=lambda trial: trial.ratio or 0)


def reserve(plan: Plan, runs: Sequence[Run], tried: Sequence[Trial]) -> int:
    """How many of the runs are kept for the end: as many as the best so far will need to be proven.

    A gain that is large against the differences between runs of the default needs two pairs, a small one more.
    """
    replay = plan.confirm_pairs is not None
    found = candidates(tried)
    pairs = PAIRS_MIN
    if found:
        default = list(relative_logs(runs, replay).get((), {}).values())
        deviation = max(statistics.stdev(default) if len(default) > 1 else 0.0, DEVIATION_LIKELY)
        # The fastest of many single runs was lucky too.
        gain = max(-math.log(found[0].ratio or 1) - deviation / 2, 0.01)
        pairs = math.ceil(2 * (STUDENT_LIKELY * deviation / gain) ** 2)
        pairs = min(max(pairs, PAIRS_MIN), PAIRS_MAX)
    most = max(round(plan.runs_max * SHARE_MAX), PAIRS_MIN * 2)
    wanted = 2 * pairs + (FINALISTS - 1) * PAIRS_MIN if found else 2 * PAIRS_MIN
    return 2 * (plan.confirm_pairs or 0) + min(wanted, most, max(plan.runs_max - 2, 0))


def step(plan: Plan, runs: Sequence[Run], history: History, left: int) -> Step | Verdict:
    """The next run of the final round, or the verdict."""
    if plan.confirm_pairs is None:
        return _Round(plan, runs, history, False).step(left)
    real = [run for run in runs if not run.replay]
    confirmed = len(_last(real))
    chosen = _Round(plan, [run for run in runs if run.replay], history, True).step(
        left + confirmed - 2 * plan.confirm_pairs
    )
    if isinstance(chosen, Step) or not chosen.recommended:
        return chosen
    return _Round(plan, real, history, False, chosen.recommended).step(left)


def _last(runs: Sequence[Run]) -> list[Run]:
    """The runs at the end that are of the final round."""
    begin = len(runs)
    while begin and runs[begin - 1].phase == "final":
        begin -= 1
    return list(runs[begin:])


class _Round:
    """The rounds that were run, read from the runs, and what is missing in the last one.

    `only`: the one configuration that is to be confirmed, if that is decided.
    """

    def __init__(
        self,
        plan: Plan,
        runs: Sequence[Run],
        history: History,
        replay: bool,
        only: Configuration | None = None,
    ):
        self.plan, self.runs, self.history, self.replay, self.only = plan, list(runs), history, replay, only
        self.done = _last(runs)
        self.out = disturbed(relative_logs(self.runs, replay))
        #: For each round: configuration -> its run.
        self.rounds: list[dict[tuple, Run]] = []

    def step(self, left: int) -> Step | Verdict:
        """Goes through the runs, round by round, until one is missing or the rounds are over."""
        rest = list(self.done)
        while True:
            members = self._members(rest, left + len(rest))
            if not members:
                return self._verdict()
            order = [{}, *members] if len(self.rounds) % 2 == 0 else [*reversed(members), {}]
            found: dict[tuple, Run] = {}
            self.rounds.append(found)
            wanted = {key(one) for one in order}
            while rest and wanted - set(found):
                run = rest.pop(0)
                if key(run.configuration) in wanted and run.number not in self.out:
                    found[key(run.configuration)] = run
            missing = [one for one in order if key(one) not in found]
            if missing:
                return self._run(missing[0], left)

    def _run(self, one: Configuration, left: int) -> Step | Verdict:
        if left <= 0:
            return self._verdict()
        what = "the default" if not one else "one of the best"
        reason = f"{what}, in turn with the other, round {len(self.rounds)}"
        return Step(configuration=one, phase="final", reason=reason, replay=self.replay)

    def _members(self, rest: Sequence[Run], left: int) -> list[Configuration]:
        """Who runs in the next round, with `rest` not yet run and `left` runs left."""
        rounds = len(self.rounds)
        if self.only is not None:
            return [self.only] if rounds < (self.plan.confirm_pairs or 0) and left >= 2 else []
        if rounds >= ROUNDS_MAX or left < 2 or (rounds >= PAIRS_MIN and self._verdict().recommended):
            return []
        before = self.runs[: len(self.runs) - len(rest)]
        found = candidates(trials(before, self.history.canonical, self.replay))
        failed = {key(t.configuration) for t in self.history.trials if t.ratio is None}
        names = [t.configuration for t in found if key(t.configuration) not in failed]
        if rounds:
            names = [one for one in names if key(one) in self.rounds[-1]]
        return names[: self._width(rounds, left)]

    def _width(self, rounds: int, left: int) -> int:
        if rounds < PAIRS_MIN:
            wide = FINALISTS + (left > 2 * FINALISTS * PAIRS_MAX)
            return max(1, min(wide, left // (PAIRS_MIN - rounds) - 1))
        return 1

    def _verdict(self) -> Verdict:
        tuned = self._winner()
        if tuned is None:
            return Verdict(recommended={}, reason=self._nothing())
        pairs = [found for found in self.rounds if () in found and key(tuned) in found]
        pairs = [found for found in pairs if counts(found[()]) and counts(found[key(tuned)])]
        if not pairs:
            return Verdict(
                recommended={}, reason="no run is left to compare what is best with the default in turn"
            )
        seconds = lambda one: [found[one].seconds or 0 for found in pairs]  # noqa: E731
        try:
            found = pairing(
                seconds(()), seconds(key(tuned)), self.plan.confidence, self._others(tuned, pairs)
            )
        except ValueError:
            return Verdict(
                recommended={}, reason="one pair of runs is too little to show that a setting is better"
            )
        return _judged(tuned, found)

    def _winner(self) -> Configuration | None:
        """The lowest median ratio in the rounds, of those that came furthest."""
        logs: dict[tuple, list[float]] = {}
        for found in self.rounds:
            for one, run in found.items():
                if one and () in found and counts(run) and counts(found[()]):
                    logs.setdefault(one, []).append((run.seconds or 0) / (found[()].seconds or 1))
        failed = {key(t.configuration) for t in self.history.trials if t.ratio is None}
        logs = {one: ratios for one, ratios in logs.items() if one not in failed}
        if not logs:
            return None
        longest = max(map(len, logs.values()))
        return dict(
            min(
                (one for one in logs if len(logs[one]) == longest),
                key=lambda one: statistics.median(logs[one]),
            )
        )

    def _others(self, tuned: Configuration, pairs: Sequence[dict[tuple, Run]]) -> list[list[float]]:
        """Ratios of the runs beside the pairs that say how much runs of one configuration differ."""
        used = {run.number for found in pairs for one, run in found.items() if one in ((), key(tuned))}
        finals = {run.number for run in self.done}
        others = []
        for one, logs in relative_logs(self.runs, self.replay).items():
            # A finalist's run of the search is no fair sample: it was chosen because it was fast.
            fair = [n for n in logs if n not in used | self.out and (not one or n in finals)]
            others.append([math.exp(logs[n]) for n in fair])
        return others

    def _nothing(self) -> str:
        ran = [trial for trial in self.history.trials if trial.ratio is not None]
        if not ran:
            return f"none of the {len(self.history.trials)} settings tried has run well"
        best = min(trial.ratio or 0 for trial in ran)
        return f"none of the {len(ran)} settings tried was faster than the default; the best took {best:.2f} of its time"


def _judged(tuned: Configuration, found: Pairing) -> Verdict:
    said = (
        f"{found.ratio:.2f} times as fast as the default in {found.pairs} pairs of runs "
        f"({found.confidence:.0%} interval {found.low:.2f} to {found.high:.2f})"
    )
    if found.low > 1 and found.ratio >= GAIN_MIN:
        return Verdict(recommended=tuned, reason=said, pairing=found)
    why = "the gain is too small to matter" if found.low > 1 else "it is not shown to be better"
    return Verdict(recommended={}, reason=f"the best setting was {said}: {why}", pairing=found)
