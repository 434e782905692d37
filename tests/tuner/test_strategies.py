"""Each strategy: new, allowed, reproducible proposals; and what is its own."""

import pytest
from support import synthetic_machine
from support.plans import parameter, plan
from support.synthetic_machine import BUFFER, COUNT, NODES, SIZE

from forebay.tune import strategies
from forebay.tune.errors import TuneError
from forebay.tune.model import key
from forebay.tune.strategies import History, Regression, Trial
from forebay.tune.trials.history import levels, untried

PLAN = plan(synthetic_machine.PARAMETERS, machine=synthetic_machine.MACHINE)
NAMES = ["greedy", "random", "tpe"]


def history(trials=(), forbidden=lambda one: None, chosen=PLAN):
    return History(chosen, tuple(trials), synthetic_machine.acting, forbidden)


def played(name, machine, runs, seed=3, forbidden=lambda one: None):
    """The trials of a search without noise."""
    trials = []
    default_s = machine.seconds({})
    for _ in range(runs):
        new = strategies.named(name).propose(history(trials, forbidden), seed)
        if new is None:
            break
        trials.append(Trial(new, machine.seconds(new) / default_s))
    return trials


def test_three_strategies_exist_and_another_name_is_an_error():
    assert strategies.names() == NAMES
    assert [strategies.named(name).confirms for name in NAMES] == [False, False, True]
    with pytest.raises(TuneError, match="simulated-annealing"):
        strategies.named("simulated-annealing")


@pytest.mark.parametrize("name", NAMES)
def test_proposals_are_new_effective_allowed_and_repeatable_by_seed(name):
    forbidden = lambda one: "no" if one.get(NODES) == "8" else None  # noqa: E731
    trials = played(name, synthetic_machine.SyntheticMachine(3), 15, forbidden=forbidden)
    names = [key(trial.configuration) for trial in trials]
    assert len(trials) > 3 and len(set(names)) == len(names) and () not in names
    assert all(synthetic_machine.acting(trial.configuration) == trial.configuration for trial in trials)
    assert not any(forbidden(trial.configuration) for trial in trials)
    assert played(name, synthetic_machine.SyntheticMachine(3), 15, forbidden=forbidden) == trials


@pytest.mark.parametrize("name", ["random", "tpe"])
def test_small_space_is_tried_completely_then_nothing_is_proposed(name):
    small = plan(PLAN.parameters[:2], machine=synthetic_machine.MACHINE, strategy=name)
    trials = []
    while (new := strategies.named(name).propose(history(trials, chosen=small), 1)) is not None:
        trials.append(Trial(new, 0.9 if len(trials) % 2 else None))
    assert len(trials) == 4 * 2 - 1


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        ("16777216", ["1048576", None, "33554432"]),
        ("33554432", ["1048576", None]),
        (None, [None, "1048576", "33554432"]),
    ],
)
def test_levels_contain_the_default_in_order_if_known(default, expected):
    assert levels(parameter(BUFFER, "1048576", "33554432", ordered=True, default=default)) == expected


def test_untried_omits_equivalent_configurations():
    everything = list(untried(history()))
    assert len(everything) == len(synthetic_machine.configurations()) - 1
    assert len({key(one) for one in everything}) == len(everything)


def test_regression_combines_separate_gains():
    trials = [Trial({COUNT: "8"}, 0.5), Trial({NODES: "8"}, 0.6), Trial({BUFFER: "1048576"}, 1.2)]
    both, worse = Regression(history(trials), 0.05).predict([{COUNT: "8", NODES: "8"}, {BUFFER: "1048576"}])[0]
    assert both < -0.7 < 0 < worse


def test_default_strategy_proposes_to_combine_separate_gains():
    trials = [Trial({COUNT: "8"}, 0.5), Trial({NODES: "8"}, 0.6)]
    trials += [Trial({SIZE: "4194304"}, 1.1), Trial({BUFFER: "1048576"}, 1.2)]
    assert strategies.named("tpe").propose(history(trials), 5) == {COUNT: "8", NODES: "8"}


class Walked:
    """ExpBB's walk on times that are given for what sets one or two parameters."""

    def __init__(self, times):
        self.times = times

    def seconds(self, one):
        return self.times.get(tuple(one.values()), 2.0) if one else 1.0


def test_walk_doubles_while_it_gains_and_stops_below_five_percent():
    machine = Walked({("2",): 0.9, ("4",): 0.93, ("8",): 0.99})
    walked = [trial.configuration for trial in played("greedy", machine, 4)]
    assert walked[:3] == [{COUNT: "2"}, {COUNT: "4"}, {COUNT: "8"}]
    machine = Walked({("2",): 0.9, ("4",): 0.96})
    walked = [trial.configuration for trial in played("greedy", machine, 4)]
    assert {COUNT: "8"} not in walked
    assert walked[2] == {COUNT: "2", SIZE: "4194304"}


def test_default_strategy_gets_closest_on_synthetic_machines():
    def mean(name):
        found = []
        for seed in range(3):
            machine = synthetic_machine.SyntheticMachine(seed)
            best = min(machine.seconds(one) for one in synthetic_machine.configurations())
            tried = [machine.seconds(trial.configuration) for trial in played(name, machine, 14, seed)]
            found.append(min(tried) / best)
        return sum(found) / len(found)

    assert mean("tpe") < min(mean("random"), mean("greedy"))
