"""One seeded search on a recorded grid, with noise added, from its first run to its choice."""

import dataclasses
import math
import random

from forebay.tune import strategies
from forebay.tune.model import Configuration, Plan, Run, Step, key
from forebay.tune.decide.search import next_step
from forebay.tune.strategies import History, Trial
from searching.grid import Grid


@dataclasses.dataclass(frozen=True)
class Noise:
    """Log-normal, with runs that something else disturbed, on a machine that becomes slower and faster again."""

    deviation: float
    disturbed_share: float
    disturbed_times: tuple[float, float] = (1.5, 3.0)
    drift: float = 0.1  # the machine's time wanders by so much up and down

    def factors(self, runs: int, draw: random.Random) -> list[float]:
        phase, period = draw.uniform(0, 2 * math.pi), draw.uniform(20, 60)
        found = []
        for number in range(runs):
            log = draw.gauss(0, self.deviation) + self.drift * math.sin(phase + 2 * math.pi * number / period)
            disturbed = draw.random() < self.disturbed_share
            found.append(math.exp(log) * (draw.uniform(*self.disturbed_times) if disturbed else 1))
        return found


NOISES = {"5 %": Noise(0.05, 0.0), "15 %": Noise(0.15, 0.10), "30 %": Noise(0.30, 0.15)}


def chosen(grid: Grid, strategy: str, noise: Noise, runs_max: int, seed: int) -> tuple[Configuration, int]:
    """What a search recommends, and the runs it took. The same seed has the same noise for each strategy."""
    factors = noise.factors(runs_max, random.Random(f"noise {grid.name} {seed}"))
    plan = Plan(
        parameters=grid.parameters,
        refusals=(),
        guesses=grid.guesses,
        machine=grid.machine,
        strategy=strategy,
        seed=seed,
        runs_max=runs_max,
    )
    play = _confirmed if strategies.named(strategy).confirms else _fastest
    return play(grid, plan, factors)


def _confirmed(grid: Grid, plan: Plan, factors: list[float]) -> tuple[Configuration, int]:
    """As `forebay tune` does it."""
    runs: list[Run] = []
    while True:
        step = next_step(plan, runs, canonical=lambda one, _: grid.acting(one), forbidden=lambda one, _: None)
        if not isinstance(step, Step):
            return step.recommended, len(runs)
        true_s = grid.seconds[key(step.configuration)]
        seconds = None if true_s is None else true_s * factors[len(runs)]
        runs.append(
            Run(
                number=len(runs) + 1,
                place="file-system",
                phase=step.phase,
                configuration=step.configuration,
                status="failed" if seconds is None else "ok",
                seconds=seconds,
            )
        )


def _fastest(grid: Grid, plan: Plan, factors: list[float]) -> tuple[Configuration, int]:
    """By the strategy's own rule: each configuration once, and the fastest run wins."""
    default_s = grid.default_s * factors[0]
    trials: list[Trial] = []
    while len(trials) + 1 < plan.runs_max:
        history = History(plan, tuple(trials), grid.acting, lambda one: None)
        new = strategies.named(plan.strategy).propose(history, plan.seed)
        if new is None:
            break
        true_s = grid.seconds[key(new)]
        trials.append(Trial(new, None if true_s is None else true_s * factors[len(trials) + 1] / default_s))
    best = min((t for t in trials if t.ratio is not None), key=lambda t: t.ratio, default=None)
    return (best.configuration if best and best.ratio < 1 else {}), len(trials) + 1
