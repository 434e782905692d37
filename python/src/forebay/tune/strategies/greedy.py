"""ExpBB's walk, as its authors describe it (KAUST, 2018), for comparison.

First a sweep of the stripe count, doubling. Then aggregators, doubling, as the outer loop; within it the
striping unit and the buffer size from the smallest on, doubling. A loop is left at the first run that is more
than 5 % slower than the best so far. Each configuration is run once. ExpBB knows no other settings; here the
walk goes on over the rest, each value once, with the best so far, so that it does not lose for want of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from forebay.tune.model import Configuration, Parameter, key
from forebay.tune.trials.history import History

#: A run that is this much slower than the best so far ends its loop.
WORSE = 1.05
STRIPE_COUNTS = ("striping_factor", "lfs_stripe_count")
AGGREGATORS = ("cb_nodes",)
UNITS = ("striping_unit", "lfs_stripe_size", "cb_buffer_size", "ind_wr_buffer_size")

#: Yields what to run, is sent its ratio (None: failed), returns nothing.
Walk = Generator[Configuration, float | None, None]


class _Best:
    """The best so far."""

    def __init__(self) -> None:
        self.configuration: Configuration = {}
        self.ratio = 1.0

    def worse(self, configuration: Configuration, ratio: float | None) -> bool:
        """Takes note of a run; whether it is so slow that its loop ends."""
        if ratio is None:
            return True
        if ratio < self.ratio:
            self.configuration, self.ratio = configuration, ratio
        return ratio > self.ratio * WORSE


class Greedy:
    """One run each, and the best single run wins: noise decides with it."""

    confirms = False

    def propose(self, history: History, seed: int) -> Configuration | None:
        """The next of the walk that the trials so far lead to."""
        known = {key(trial.configuration): trial.ratio for trial in history.trials}
        walk = _walk(history.plan.parameters)
        try:
            chosen = history.canonical(next(walk))
            while not chosen or key(chosen) in known or history.forbidden(chosen):
                ratio = known.get(key(chosen)) if chosen else 1.0
                chosen = history.canonical(walk.send(ratio))
        except StopIteration:
            return None
        return chosen


def _of(parameters: Iterable[Parameter], settings: tuple[str, ...]) -> list[Parameter]:
    return [p for setting in settings for p in parameters if p.setting == setting]


def _loop(parameter: Parameter, start: Configuration, best: _Best, stops: bool = True) -> Walk:
    for value in parameter.values:
        one = start | {parameter.name: value}
        ratio = yield one
        if best.worse(one, ratio) and stops:
            return


def _walk(parameters: tuple[Parameter, ...]) -> Walk:
    best = _Best()
    for counts in _of(parameters, STRIPE_COUNTS):
        yield from _loop(counts, {}, best)
    units = _of(parameters, UNITS)
    for unit in units:
        yield from _loop(unit, best.configuration, best)
    for aggregators in _of(parameters, AGGREGATORS):
        yield from _raised(aggregators, units, best)
    rest = set(parameters) - set(_of(parameters, STRIPE_COUNTS + AGGREGATORS + UNITS))
    for parameter in sorted(rest, key=lambda p: p.name):
        yield from _loop(parameter, best.configuration, best, stops=False)


def _raised(aggregators: Parameter, units: list[Parameter], best: _Best) -> Walk:
    """More aggregators with the best units so far; where that is slower, once more with the default units."""
    for value in aggregators.values:
        before = best.ratio
        one = best.configuration | {aggregators.name: value}
        ratio = yield one
        if best.worse(one, ratio):
            initial = {name: v for name, v in one.items() if name not in {unit.name for unit in units}}
            ratio = yield initial
            if best.worse(initial, ratio):
                return
            one = initial
        for unit in units:
            yield from _loop(unit, one, best)
        if best.ratio >= before:
            return


STRATEGY = Greedy()
