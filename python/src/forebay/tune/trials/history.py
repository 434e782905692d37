"""What a strategy is given, and what it is."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from forebay.tune.model import Configuration, Parameter, Plan, key

#: Spaces up to this size are looked through whole for what has not been tried.
WHOLE_SPACE_MAX = 20_000


@dataclass(frozen=True)
class Trial:
    """One configuration that was run: its time relative to the default's (below 1: faster; None: failed)."""

    configuration: Configuration
    ratio: float | None
    effective: bool = True  # the counters show that it did something


@dataclass(frozen=True)
class History:
    """The plan, and what was tried so far in the order of first runs, the default not among it.

    `canonical` leaves out of a configuration what cannot act, so that equal in effect means equal;
    `forbidden` says why one may not be run (forebay.tune.space).
    """

    plan: Plan
    trials: tuple[Trial, ...]
    canonical: Callable[[Configuration], Configuration]
    forbidden: Callable[[Configuration], str | None]
    noise: float = 0.1  # standard deviation of the log of one run's time, as far as known

    def usable(self, configuration: Configuration) -> Configuration | None:
        """The configuration as it acts, if it is new and may be run."""
        acting = self.canonical(configuration)
        return None if not acting or key(acting) in self._tried or self.forbidden(acting) else acting

    @functools.cached_property
    def _tried(self) -> frozenset[tuple]:
        return frozenset(key(trial.configuration) for trial in self.trials)

    def fastest(self) -> list[Trial]:
        """What ran and had an effect, the fastest first."""
        return sorted(
            (t for t in self.trials if t.ratio is not None and t.effective), key=lambda t: t.ratio or 0
        )


class Strategy(Protocol):
    """A strategy of search. It is a pure function of its arguments."""

    #: Whether its choice is a final round. If not, its own rule is that the fastest single run wins; `forebay
    #: tune` confirms it nevertheless, the benchmark of searches does not.
    confirms: bool

    def propose(self, history: History, seed: int) -> Configuration | None:
        """A configuration that is new and may be run, as `canonical` has it; None: there is no more."""
        ...


def levels(parameter: Parameter) -> list[str | None]:
    """The values of a parameter with the default, None, at its place if its value is known, else first."""
    others: list[str | None] = [value for value in parameter.values if value != parameter.default]
    if parameter.ordered and parameter.default is not None:
        try:
            place = sum(float(value or 0) < float(parameter.default) for value in others)
        except ValueError:
            place = 0
        return [*others[:place], None, *others[place:]]
    return [None, *others]


def untried(history: History) -> Iterator[Configuration]:
    """All of a space that is new and may be run, each once; nothing if the space is too large."""
    axes = [levels(parameter) for parameter in history.plan.parameters]
    if math.prod(map(len, axes)) > WHOLE_SPACE_MAX:
        return
    seen = set()
    for row in itertools.product(*axes):
        chosen = configuration(history.plan, row)
        new = history.usable(chosen)
        if new is not None and key(new) not in seen:
            seen.add(key(new))
            yield new


def configuration(plan: Plan, row: tuple[str | None, ...]) -> Configuration:
    """From one level for each parameter of the plan; None is left out."""
    return {
        parameter.name: value
        for parameter, value in zip(plan.parameters, row, strict=True)
        if value is not None
    }


def neighbours(history: History, center: Configuration) -> list[Configuration]:
    """What differs from a configuration in one parameter and is new."""
    found: dict[tuple, Configuration] = {}
    for parameter in history.plan.parameters:
        changed = {name: old for name, old in center.items() if name != parameter.name}
        for value in levels(parameter):
            new = history.usable(changed if value is None else changed | {parameter.name: value})
            if new is not None:
                found[key(new)] = new
    return list(found.values())
