"""The tuner's own strategy: neighbours of the fastest so far, and Optuna's multivariate TPE on log ratios."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Sequence

import numpy as np
import optuna

from forebay.tune.model import Configuration, Parameter
from forebay.tune.trials.history import History, Trial, configuration, levels, neighbours, untried
from forebay.tune.trials.regression import Regression

#: Every so many proposals TPE has a say: it sees the whole space, neighbours do not.
TPE_EVERY = 3
#: Trials before that TPE draws at random.
STARTUP_TRIALS = 4
#: TPE is asked again so often when it proposes what was tried.
ASKED_MAX = 12
#: So many of the fastest have their neighbours looked at; so many are united with each other.
BASES, UNITED = 2, 4
#: How many standard deviations of doubt make a neighbour worth a run.
CURIOSITY = 1.0


class Tpe:
    """Neighbours of the fastest and TPE in turn: spaces are small, and few runs must do."""

    confirms = True

    def propose(self, history: History, seed: int) -> Configuration | None:
        """From the neighbours or TPE; where these have nothing new, anything that is."""
        draw = random.Random(f"{seed} {len(history.trials)}")
        new = _neighbour(history) if len(history.trials) % TPE_EVERY else None
        return new or _asked(history, draw.randrange(2**32)) or _any(history, draw)


def _any(history: History, draw: random.Random) -> Configuration | None:
    rest = list(untried(history))
    return draw.choice(rest) if rest else None


def _neighbour(history: History) -> Configuration | None:
    """What may be fastest of all that is near the fastest, by the regression's lower confidence bound."""
    fastest = history.fastest()
    near = [one for trial in fastest[:BASES] for one in neighbours(history, trial.configuration)]
    near += _united(history, fastest[:UNITED])
    if not near:
        return None
    mean, deviation = Regression(history, history.noise).predict(near)
    return near[int(np.argmin(mean - CURIOSITY * deviation))]


def _united(history: History, fastest: Sequence[Trial]) -> list[Configuration]:
    """What two of the fastest set together: gains of aggregators and of striping often multiply."""
    pairs = itertools.permutations((trial.configuration for trial in fastest), 2)
    return [new for one, other in pairs if (new := history.usable(one | other)) is not None]


def _distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    if parameter.ordered:
        return optuna.distributions.IntDistribution(0, len(levels(parameter)) - 1)
    return optuna.distributions.CategoricalDistribution(levels(parameter))


def _asked(history: History, seed: int) -> Configuration | None:
    """What TPE proposes, if it is new."""
    parameters = history.plan.parameters
    space = {parameter.name: _distribution(parameter) for parameter in parameters}
    study = _study(seed)
    worst = max((trial.ratio for trial in history.trials if trial.ratio is not None), default=1.0)
    for one, ratio in [({}, 1.0), *((t.configuration, t.ratio) for t in history.trials)]:
        place = {
            p.name: levels(p).index(one.get(p.name)) if p.ordered else one.get(p.name) for p in parameters
        }
        # A failed one is as bad as it gets, so that its surroundings are left.
        value = math.log(max(worst, 1.0) * 2 if ratio is None else ratio)
        study.add_trial(optuna.create_trial(params=place, distributions=space, value=value))
    for _ in range(ASKED_MAX):
        asked = study.ask(space).params
        row = tuple(levels(p)[asked[p.name]] if p.ordered else asked[p.name] for p in parameters)
        new = history.usable(configuration(history.plan, row))
        if new is not None:
            return new
    return None


def _study(seed: int) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=STARTUP_TRIALS)
    return optuna.create_study(sampler=sampler)


STRATEGY = Tpe()
