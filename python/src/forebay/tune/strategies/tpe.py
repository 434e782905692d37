"""The tuner's own strategy: Optuna's multivariate TPE on log ratios, and the neighbours of what is fastest so far."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Sequence

import numpy as np
import optuna

from forebay.tune.model import Configuration, Parameter
from forebay.tune.strategies._base import History, Trial, configuration, levels, neighbours, untried

#: Trials before TPE has a say; the neighbours of the fastest are looked at first.
STARTUP_TRIALS = 4
import os
E = lambda n, d: float(os.environ.get(n, d))
TPE_EVERY = int(E("TPE_EVERY", 3))
BASES = int(E("BASES", 2))
HALVED = E("HALVED", 1.3)
UNITED = int(E("UN", 4))
NOISE = E("NZ", 0.15)
EFFECT = E("EFFECT", 0.5)
CURIOSITY = E("CUR", 1.0)
#: Asked again so often when TPE proposes what was tried.
ASKED_MAX = 12


class Tpe:
    """Neighbours of the fastest and TPE in turn: spaces are small, and few runs must do."""

    confirms = True

    def propose(self, history: History, seed: int) -> Configuration | None:
        """From TPE and the neighbours in turn."""
        draw = random.Random(f"{seed} {len(history.trials)}")
        new = None
        if len(history.trials) % TPE_EVERY:
            new = _neighbour(history)
        return new or _asked(history, draw.randrange(2**32)) or next(iter(_shuffled(history, draw)), None)


def _features(parameters: Sequence[Parameter], one: Configuration) -> list[float]:
    """1 for each level that is reached: an ordered parameter reaches all below its value, so that near is alike."""
    row = [1.0]
    for parameter in parameters:
        value, steps = one.get(parameter.name), levels(parameter)
        at, zero = steps.index(value), steps.index(None)
        if parameter.ordered:
            row += [float(zero < step <= at) - float(at < step <= zero) for step in range(len(steps))]
        else:
            row += [float(step == at and step != zero) for step in range(len(steps))]
    return row


def _united(history: History, fastest: Sequence[Trial]) -> list[Configuration]:
    """What two of the fastest set together: gains of aggregators and of striping often multiply."""
    pairs = itertools.permutations((trial.configuration for trial in fastest), 2)
    return [new for one, other in pairs if (new := history.usable(one | other)) is not None]


def _neighbour(history: History) -> Configuration | None:
    """The most promising configuration that differs in one parameter from one of the fastest.

    By Bayesian regression of the log ratios on the levels, in which the trials that are like the fastest weigh most;
    what is uncertain is promising too (lower confidence bound).
    """
    fastest = history.fastest()
    bases = [trial.configuration for trial in fastest[:BASES]]
    near = [one for base in bases for one in neighbours(history, base)] + _united(history, fastest[:UNITED])
    if not near:
        return None
    parameters = history.plan.parameters
    tried = [trial for trial in history.trials if trial.ratio is not None]
    centre = np.array(_features(parameters, bases[0]))
    x = np.array([_features(parameters, {}), *(_features(parameters, trial.configuration) for trial in tried)])
    y = np.array([0.0, *(math.log(trial.ratio or 1) for trial in tried)])
    weight = HALVED ** -np.abs(x - centre).sum(axis=1) / NOISE**2
    precision = x.T @ (x * weight[:, None]) + np.eye(x.shape[1]) / EFFECT**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ (x.T @ (weight * y))
    new = np.array([_features(parameters, one) for one in near])
    bound = new @ mean - CURIOSITY * np.sqrt(np.einsum("ij,jk,ik->i", new, covariance, new))
    return near[int(np.argmin(bound))]


def _shuffled(history: History, draw: random.Random) -> list[Configuration]:
    rest = list(untried(history))
    draw.shuffle(rest)
    return rest


def _distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    if parameter.ordered:
        return optuna.distributions.IntDistribution(0, len(levels(parameter)) - 1)
    return optuna.distributions.CategoricalDistribution(levels(parameter))


def _asked(history: History, seed: int) -> Configuration | None:
    """What TPE proposes, if it is new."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    parameters = history.plan.parameters
    space = {parameter.name: _distribution(parameter) for parameter in parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, n_startup_trials=STARTUP_TRIALS, n_ei_candidates=48
        )
    study = optuna.create_study(sampler=sampler)
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


STRATEGY = Tpe()
