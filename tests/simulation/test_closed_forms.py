"""Plays against queues of which the mean is known: each over several seeds, within their confidence."""

import math

import numpy as np
import pytest

from forebay.simulate.outcome import outcome
from forebay.simulate.policies import POLICIES
from support.simulated import GIB, arrivals, jobs, played, pool, within_confidence
from support.strace import EVERY_POINT, few

SEEDS = range(8)
JOBS = 12_000 if EVERY_POINT else 5_000
ERROR = 0.05 if EVERY_POINT else 0.1  # of a mean, at most


def erlang_c(servers, load):
    """The probability that a job waits in M/M/c; `load`: arrivals times service time."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def mean_waits(seed_jobs, **how):
    """The mean wait of each seed, without the first tenth, in which the queue fills."""
    found = []
    for seed in SEEDS:
        of = seed_jobs(np.random.default_rng(seed))
        result = played(of, **how)
        found.append((result.start_s - result.submit_s)[len(of) // 10 :].mean())
    return found


@pytest.mark.soak
@pytest.mark.parametrize(
    "servers, use, policy", few((1, 0.6, "fifo"), *((4, 0.75, policy) for policy in POLICIES), kept=2)
)
def test_nodes_are_the_servers_of_mmc(servers, use, policy):
    service_s = 100.0
    rate = use * servers / service_s
    means = mean_waits(
        lambda random: jobs(arrivals(random, JOBS, rate), random.exponential(service_s, JOBS)),
        nodes=servers, policy=policy,
    )  # fmt: skip
    expected = erlang_c(servers, rate * service_s) * service_s / (servers * (1 - use))
    assert within_confidence(means, expected, ERROR)


def test_constant_runs_wait_half_as_long_as_in_md1():
    service_s, use = 100.0, 0.7
    means = mean_waits(lambda random: jobs(arrivals(random, JOBS, use / service_s), service_s), nodes=1)
    assert within_confidence(means, use * service_s / (2 * (1 - use)), ERROR)


@pytest.mark.soak
def test_granules_are_the_servers_of_mmc_when_nodes_are_ample():
    """A pool of three granules, each job with one of them."""
    service_s, use = 50.0, 0.7
    means = mean_waits(
        lambda random: jobs(
            arrivals(random, JOBS, use * 3 / service_s), random.exponential(service_s, JOBS), capacity=GIB
        ),
        of_pool=pool(granules=3),
    )
    expected = erlang_c(3, use * 3) * service_s / (3 * (1 - use))
    assert within_confidence(means, expected, ERROR)


@pytest.mark.soak
@pytest.mark.parametrize("sizes", few("exponential", "constant"))
def test_staging_shares_the_file_system_as_in_processor_sharing(sizes):
    """The mean time in M/G/1 with processor sharing is S / (1 - use), whatever the distribution of sizes."""
    size, use, bytes_per_s = 100.0 * GIB, 0.6, 1.0 * GIB
    ample = pool(granules=10_000, granule_bytes=10_000 * GIB)
    means = []
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        staged = random.exponential(size, JOBS) if sizes == "exponential" else size
        of = jobs(arrivals(random, JOBS, use * bytes_per_s / size), 1.0, stage_in=staged)
        result = played(of, policy="stage-ahead", of_pool=ample, file_system_bytes_per_s=bytes_per_s)
        means.append(result.staged_in_s[JOBS // 10 :].mean())
    assert within_confidence(means, size / bytes_per_s / (1 - use), ERROR)


@pytest.mark.long
@pytest.mark.parametrize("policy, count", [(policy, 100_000 if EVERY_POINT else 4_000) for policy in POLICIES])
def test_jobs_waiting_on_average_are_arrivals_times_wait(policy, count):
    """Little's law, of which each sum is exact in a finite play. The pool is often full."""
    random = np.random.default_rng(5)
    of = jobs(
        arrivals(random, count, 1 / 60), random.lognormal(7, 1, count), nodes=random.choice([1, 4, 16, 64], count),
        limit_factor=random.uniform(1, 4, count), capacity=random.lognormal(3, 1, count) * GIB,
        stage_in=random.lognormal(2, 1, count) * GIB, stage_out=random.lognormal(2, 1, count) * GIB,
        io=random.lognormal(3, 1, count) * GIB,
    )  # fmt: skip
    of_pool = pool(granules=4000, servers=40, server_bytes_per_s=2.0 * GIB)
    result = played(of, nodes=640, policy=policy, of_pool=of_pool, file_system_bytes_per_s=20.0 * GIB)
    found = outcome(of, of_pool, 640, result)
    assert found.jobs == count
    assert found.waiting_jobs_mean * found.span_s == pytest.approx(found.wait_mean_s * count, rel=1e-9)
    held_s = (result.nodes_held_s * of.nodes).sum()
    assert found.nodes_used * 640 * found.span_s == pytest.approx(held_s, rel=1e-9)
    assert held_s - (result.computed_s * of.nodes).sum() == pytest.approx(
        found.staging_node_hours * 3600, rel=1e-6, abs=1
    )
    # Nothing is given out twice, and all is returned.
    assert result.used_nodes.max() <= 640 and result.used_granules.max() <= 4000
    assert (result.used_nodes[-1], result.used_granules[-1], result.not_started[-1]) == (0, 0, 0)
    assert (result.start_s >= result.submit_s).all() and (result.end_s > result.start_s).all()
