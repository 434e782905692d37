"""Random search: any configuration that was not tried, each as likely as the others."""

from __future__ import annotations

import random

from forebay.tune.model import Configuration
from forebay.tune.trials.history import History, configuration, levels, untried

#: Draws in a space that is too large to be looked through.
DRAWS_MAX = 1000


class Random:
    """What every other strategy has to beat."""

    confirms = False

    def propose(self, history: History, seed: int) -> Configuration | None:
        """A drawing without return."""
        draw = random.Random(f"{seed} {len(history.trials)}")
        rest = list(untried(history))
        if rest:
            return draw.choice(rest)
        axes = [levels(parameter) for parameter in history.plan.parameters]
        for _ in range(DRAWS_MAX):
            new = history.usable(configuration(history.plan, tuple(draw.choice(axis) for axis in axes)))
            if new is not None:
                return new
        return None


STRATEGY = Random()
