"""The tuner's own strategy: Optuna's multivariate TPE on log ratios, and the neighbours of what is fastest so far."""

from __future__ import annotations

import math
import random
import warnings

import optuna

from forebay.tune.model import Configuration, Parameter
from forebay.tune.strategies._base import History, configuration, levels, neighbours, untried

#: Trials before TPE has a say; the neighbours of the fastest are looked at first.
STARTUP_TRIALS = 4
#: Asked again so often when TPE proposes what was tried.
ASKED_MAX = 12


class Tpe:
    """Every other proposal is a neighbour of the fastest so far: spaces are small, and one parameter often decides."""

    confirms = True

    def propose(self, history: History, seed: int) -> Configuration | None:
        """From TPE and the neighbours in turn."""
        draw = random.Random(f"{seed} {len(history.trials)}")
        fastest = history.fastest()
        if fastest and len(history.trials) % 2:
            near = [one for trial in fastest[:2] for one in neighbours(history, trial.configuration)]
            if near:
                return draw.choice(near)
        return _asked(history, draw.randrange(2**32)) or next(iter(_shuffled(history, draw)), None)


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
