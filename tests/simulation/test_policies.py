"""Plays of a few jobs, of which each step can be followed by hand."""

import numpy as np
import pytest

from forebay.simulate.servers import Servers
from forebay.simulate.site import make_pool
from support.simulated import GIB, jobs, played, pool


def starts(result):
    return result.start_s.tolist()


def test_fifo_lets_no_job_overtake():
    of = jobs([0, 1, 2], [100, 10, 10], nodes=[6, 10, 4])
    assert starts(played(of, nodes=10)) == [0, 100, 110]


def test_backfilled_job_does_not_delay_the_first_one():
    """The second job needs all nodes at 100 s: the third one is over by then, the fourth one would not be."""
    of = jobs([0, 1, 2, 3], [100, 10, 90, 200], nodes=[6, 10, 4, 4])
    assert starts(played(of, nodes=10, policy="backfill")) == [0, 100, 2, 110]


def test_backfilled_job_may_use_nodes_that_the_first_one_leaves():
    of = jobs([0, 1, 2, 3], [100, 10, 500, 500], nodes=[6, 8, 2, 2])
    assert starts(played(of, nodes=10, policy="backfill")) == [0, 100, 2, 110]


def test_limits_decide_about_backfilling_not_run_times():
    of = jobs([0, 1, 2], [100, 10, 90], nodes=[6, 10, 4], limit_factor=[1, 1, 2])
    assert starts(played(of, nodes=10, policy="backfill")) == [0, 100, 110]


def test_only_reserve_keeps_granules_for_the_first_job():
    """The second job waits for the granules of the first one. The third one would take them away for long."""
    of = jobs([0, 1, 2], [100, 10, 1000], nodes=1, capacity=[80 * GIB, 100 * GIB, 20 * GIB])
    assert starts(played(of, nodes=10, policy="backfill")) == [0, 1002, 2]
    assert starts(played(of, nodes=10, policy="reserve")) == [0, 100, 110]


def test_fifo_and_backfill_stage_while_nodes_wait_and_stage_ahead_does_not():
    """The second job stages 50 GiB in and 20 GiB out at 1 GiB/s."""
    of = jobs([0, 0], [100, 30], nodes=4, capacity=GIB, stage_in=[0, 50 * GIB], stage_out=[0, 20 * GIB])
    held = played(of, nodes=4, policy="backfill", file_system_bytes_per_s=GIB)
    assert (starts(held), held.nodes_held_s.tolist()) == ([0, 150], [100, 100])
    assert held.hidden.tolist() == [False, False] and held.end_s.tolist() == [100, 200]
    ahead = played(of, nodes=4, policy="stage-ahead", file_system_bytes_per_s=GIB)
    assert (starts(ahead), ahead.nodes_held_s.tolist()) == ([0, 100], [100, 30])
    assert ahead.hidden.tolist() == [False, True] and ahead.end_s.tolist() == [100, 150]


def test_stage_in_that_nodes_wait_for_is_not_hidden():
    of = jobs([0], [10], capacity=GIB, stage_in=30 * GIB)
    result = played(of, nodes=4, policy="stage-ahead", file_system_bytes_per_s=GIB)
    assert (starts(result), result.hidden.tolist()) == ([30], [False])


def test_pool_is_given_in_the_order_of_submission_with_stage_ahead():
    """The second job is too large for what is left; the third one must not take it."""
    of = jobs([0, 1, 2], [100, 10, 1000], nodes=1, capacity=[80 * GIB, 100 * GIB, 20 * GIB])
    assert starts(played(of, nodes=10, policy="stage-ahead")) == [0, 100, 110]


def test_jobs_that_ask_for_too_much_are_rejected_and_hold_up_none():
    of = jobs([0, 1, 2, 3], 10, nodes=[1, 11, 1, 11], capacity=[101 * GIB, 0, GIB, 101 * GIB])
    result = played(of, nodes=10)
    assert result.too_large_for_pool.tolist() == [True, False, False, True]
    assert result.too_large_for_machine.tolist() == [False, True, False, True]
    assert np.isnan(result.start_s).tolist() == [True, True, False, True] and result.start_s[2] == 2


def test_transfers_share_what_those_with_lower_limits_leave():
    """A job on one server has 1 GiB/s at most. The other one gets the 9 GiB/s that are left, then all 10."""
    of_pool = pool(granules=100, servers=20, server_bytes_per_s=1.0 * GIB, granule_bytes=100 * GIB)
    of = jobs([0, 0], 1, capacity=[100 * GIB, 2000 * GIB], stage_in=[10 * GIB, 100 * GIB])
    result = played(of, policy="stage-ahead", of_pool=of_pool, file_system_bytes_per_s=10.0 * GIB)
    assert result.staged_in_s.tolist() == pytest.approx([10, 11])


def test_granules_go_round_all_servers_before_one_has_two():
    servers = Servers(pool(granules=15 * 268, servers=268, server_bytes_per_s=1.0))
    first = servers.allocate(300)
    assert (first.sum(), first.max(), (first == 2).sum()) == (300, 2, 32)
    # Every stripe is as long: the servers with two granules have twice as much to do.
    assert servers.alone_bytes_per_s(first) == 150
    second = servers.allocate(100)
    assert second.max() == 1 and second[32:132].sum() == 100
    servers.release(first)
    servers.release(second)
    assert (servers.free == 15).all()


def test_jobs_with_two_granules_on_a_server_are_counted_as_doubled():
    of = jobs([0, 100, 200], 10, capacity=[4 * GIB, 5 * GIB, 0])
    assert played(of, of_pool=pool(granules=8, servers=4)).doubled.tolist() == [False, True, False]


def test_full_servers_are_passed_over():
    servers = Servers(pool(granules=6, servers=3))
    assert servers.allocate(2).tolist() == [1, 1, 0]
    assert servers.allocate(3).tolist() == [1, 1, 1]
    assert servers.allocate(1).tolist() == [0, 0, 1]


def test_jobs_that_do_io_on_the_same_servers_slow_each_other():
    """Both move 10 GiB on the one server with 1 GiB/s, and the second begins while the first one runs."""
    of_pool = pool(granules=10, servers=1, server_bytes_per_s=1.0 * GIB)
    alone = played(jobs([0, 1000], 5, capacity=GIB, io=10 * GIB), of_pool=of_pool)
    assert alone.computed_s.tolist() == [15, 15]
    together = played(jobs([0, 1], 5, capacity=GIB, io=10 * GIB), of_pool=of_pool)
    assert together.computed_s.tolist() == [15, 25]


def test_granules_are_whole_on_each_server():
    """Shaheen II (KAUST18): 268 servers, 1,636,043,520 MiB in granules of 406,976 MiB."""
    mib = 1 << 20
    found = make_pool(1_636_043_520 * mib, 406_976 * mib, 268, 1.0)
    assert (found.granules, found.granules_per_server) == (4020, 15)
    less = make_pool(1_636_043_519 * mib, 406_976 * mib, 268, 1.0)
    assert less.granules == 14 * 268


def test_order_of_equal_times_is_that_of_submission():
    of = jobs([0] * 5, 10, nodes=1)
    assert starts(played(of, nodes=1)) == [0, 10, 20, 30, 40]


def test_large_times_end():
    """Clocks of a century have a coarse resolution: transfers must still end."""
    of = jobs([3e9, 3e9 + 1e-3], 1, capacity=GIB, stage_in=[GIB / 3, GIB / 7])
    result = played(of, policy="stage-ahead", file_system_bytes_per_s=1e12)
    assert (result.end_s > 3e9).all()
