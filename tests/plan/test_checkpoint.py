"""Young's and Daly's intervals, and drains."""

import math
import random

import pytest

from forebay.plan.checkpoint import daly, plan_interval, waste, young
from forebay.plan.errors import PlanError


def test_daly_minimises_its_own_model():
    random.seed(5)
    for _ in range(200):
        write_s, failure_s = random.uniform(0.1, 600), random.uniform(3600, 1e6)
        best = daly(write_s, failure_s)
        least = waste(best, write_s, 0, failure_s)
        for factor in (0.5, 0.8, 1.25, 2.0):
            assert waste(factor * best, write_s, 0, failure_s) >= least * 0.999


def test_daly_is_near_young_for_fast_checkpoints():
    assert young(10, 86400) == pytest.approx(math.sqrt(2 * 10 * 86400))
    assert daly(10, 86400) == pytest.approx(young(10, 86400), rel=0.02)
    assert daly(500, 100) == 100


def test_waste_is_a_share_and_grows_with_failures():
    assert 0 < waste(1000, 10, 10, 1e6) < waste(1000, 10, 10, 1e4) < 1
    assert waste(1000, 10, 10, 1.0) == pytest.approx(1.0)
    assert waste(1000, 10, 10, 1e4, lost_s=100) > waste(1000, 10, 10, 1e4)


def plan(**changes):
    values = {
        "total_bytes": 1e12,
        "write_s": 5.0,
        "restart_s": 5.0,
        "failure_s": 86400.0,
        "kind": "datawarp",
        "nodes": 100,
        "servers": 8,
    }
    return plan_interval("bb", **values | changes)


def test_slow_drain_sets_the_interval():
    found = plan(drain_s=3600.0)
    assert found.is_drain_limiting and found.interval_s == pytest.approx(3595.0)
    assert found.drain_bytes_per_s_min == pytest.approx(1e12 / 3600)
    assert not plan(drain_s=60.0).is_drain_limiting


def test_held_capacity_costs_node_hours_all_day_and_servers_while_they_write():
    without, held = plan(), plan(held_nodes=2.0, working_nodes=8)
    assert without.storage_node_hours_per_day == 0
    share = held.write_s / (held.interval_s + held.write_s)
    assert held.storage_node_hours_per_day == pytest.approx(24 * (2 * (1 - share) + 8 * share))
    assert held.lost_node_hours_per_day == pytest.approx(24 * 100 * held.waste) == without.lost_node_hours_per_day
    assert held.node_hours_per_day == held.lost_node_hours_per_day + held.storage_node_hours_per_day


def test_storage_that_dies_with_its_node_loses_more():
    assert plan(drain_s=300.0, survives_node_loss=False).waste > plan(drain_s=300.0).waste


@pytest.mark.parametrize("bad", [(0, 1), (1, 0), (-1, 1), (1, float("inf")), (float("nan"), 1)])
def test_impossible_times_are_refused(bad):
    with pytest.raises(PlanError) as refused:
        daly(*bad)
    assert refused.value.hint
