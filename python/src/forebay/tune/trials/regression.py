"""What the trials say of configurations near the fastest: Bayesian regression of log ratios on levels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forebay.tune.model import Configuration, Parameter
from forebay.tune.trials.history import History, Trial, levels

#: Before anything is known: what one step of a parameter does to the log of the time, and how far a
#: configuration may be from the sum of its steps (settings interact).
EFFECT = 0.5
MISFIT = 0.15
#: A trial weighs this much less for each level that it is away from the fastest, so that the regression is a
#: local one.
HALVED = 1.3


def features(parameters: Sequence[Parameter], one: Configuration) -> list[float]:
    """1 for each level that is reached; an ordered parameter reaches all up to its value: near is alike."""
    row = [1.0]
    for parameter in parameters:
        value, steps = one.get(parameter.name), levels(parameter)
        at, zero = steps.index(value if value in steps else None), steps.index(None)
        if parameter.ordered:
            row += [float(zero < step <= at) - float(at < step <= zero) for step in range(len(steps))]
        else:
            row += [float(step == at and step != zero) for step in range(len(steps))]
    return row


class Regression:
    """Fitted to the default and the trials that ran. `noise`: see History."""

    def __init__(self, history: History, noise: float):
        self.parameters = history.plan.parameters
        tried = [trial for trial in history.trials if trial.ratio is not None]
        fastest = history.fastest()
        x = self._matrix([{}, *(trial.configuration for trial in tried)])
        y = np.array([0.0, *(math.log(trial.ratio or 1) for trial in tried)])
        centre = np.array(features(self.parameters, fastest[0].configuration if fastest else {}))
        weight = HALVED ** -np.abs(x - centre).sum(axis=1) / (noise**2 + MISFIT**2)
        self.noise = noise
        self.covariance = np.linalg.inv(x.T @ (x * weight[:, None]) + np.eye(x.shape[1]) / EFFECT**2)
        self.mean = self.covariance @ (x.T @ (weight * y))

    def _matrix(self, configurations: Sequence[Configuration]) -> np.ndarray:
        return np.array([features(self.parameters, one) for one in configurations])

    def predict(self, configurations: Sequence[Configuration]) -> tuple[np.ndarray, np.ndarray]:
        """The expected log ratio of each, and its standard deviation."""
        x = self._matrix(configurations)
        return x @ self.mean, np.sqrt(np.einsum("ij,jk,ik->i", x, self.covariance, x))

    def expected(self, trial: Trial) -> float:
        """The log ratio of what was run: between its own run and the regression, by the noise of one run."""
        predicted = float(self.predict([trial.configuration])[0][0])
        own = MISFIT**2 / (MISFIT**2 + self.noise**2)
        return own * math.log(trial.ratio or 1) + (1 - own) * predicted
