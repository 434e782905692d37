"""Ratios to the default, disturbed runs, and the interval of a gain."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from forebay.tune.decide.final_round import LAST_LOOK
from forebay.tune.decide.statistics import disturbed, is_beyond_noise, log_seconds, noise, pairing, ratios
from support import plans
from support.strace import EVERY_POINT


def run(number, seconds, configuration=None, status="ok", replay=False):
    return plans.run(number, configuration, seconds=seconds, status=status, replay=replay)


A = {"a": "1"}


def test_ratios_follow_a_machine_that_becomes_slower():
    drift = [1.0, 1.1, 1.2, 1.3, 1.4]
    runs = [run(n, (10 if n % 2 else 5) * slow, None if n % 2 else A) for n, slow in enumerate(drift, 1)]
    assert [round(ratio, 1) for ratio in ratios(runs)][1::2] == [0.5, 0.5]


def test_one_disturbed_default_run_changes_no_ratio():
    quiet = [run(n, 10.0 if n % 2 else 5.0, None if n % 2 else A) for n in range(1, 8)]
    loud = [run(3, 40.0) if one.number == 3 else one for one in quiet]
    assert ratios(loud)[1] == pytest.approx(ratios(quiet)[1]) == pytest.approx(0.5)


def test_runs_without_a_time_and_without_a_default_have_no_ratio():
    runs = [run(1, 10.0), run(2, None, A, "failed"), run(3, 5.0, A, "contaminated"), run(4, 1.0, A, replay=True)]
    assert ratios(runs) == [1.0, None, None, None]
    assert ratios([]) == []


def test_recorded_io_has_its_own_default_runs():
    runs = [run(1, 100.0), run(2, 10.0, replay=True), run(3, 5.0, A, replay=True)]
    assert ratios(runs) == pytest.approx([1.0, 1.0, 0.5])


def test_slow_outlier_is_disturbed_and_a_fast_one_is_not():
    times = [10.0, 10.2, 9.9, 10.1, 25.0, 4.0]
    logs = {(): {n: math.log(t) for n, t in enumerate(times)}}
    assert disturbed(logs) == {4}


def test_runs_of_a_noisy_job_are_not_called_disturbed():
    draw = np.random.default_rng(4)
    logs = {(): dict(enumerate(draw.normal(0, 0.3, 12))), ("a",): dict(enumerate(draw.normal(-1, 0.3, 6), 20))}
    assert disturbed(logs) == set()


def test_noise_is_that_of_the_default_or_a_usual_value_at_first():
    assert noise([run(1, 10.0)], False) == pytest.approx(0.2)
    draw = np.random.default_rng(1)
    many = [run(n, float(10 * math.exp(draw.normal(0, 0.3)))) for n in range(60)]
    assert noise(many, False) == pytest.approx(0.3, rel=0.3)


@pytest.mark.parametrize(("seconds", "beyond"), [(2.0, True), (8.0, False), (12.0, False), (50.0, True), (None, False)])
def test_time_beyond_the_noise_of_the_default_is_seen(seconds, beyond):
    assert is_beyond_noise(run(2, seconds, A), [run(1, 10.0), run(2, 1.0, A)], 0.95) == beyond
    assert not is_beyond_noise(run(2, seconds, A), [], 0.95)


def test_pairing_has_ratio_and_medians():
    found = pairing([10.0, 11.0, 10.5], [5.0, 5.5, 5.1], 0.95)
    assert found.pairs == 3 and found.default_s == 10.5 and found.tuned_s == 5.1
    assert found.low < found.ratio < found.high and found.ratio == pytest.approx(2.02, abs=0.02)


def test_one_pair_alone_and_no_pairs_are_refused():
    with pytest.raises(ValueError, match="no interval"):
        pairing([10.0], [5.0], 0.95)
    with pytest.raises(ValueError, match="no pairs"):
        pairing([10.0], [5.0, 5.0], 0.95)


def test_other_runs_narrow_the_interval_without_shifting_it():
    few = pairing([10.0, 10.4], [5.0, 5.2], 0.95)
    more = pairing([10.0, 10.4], [5.0, 5.2], 0.95, [[1.0, 1.03, 0.98], [3.0, 3.1]])
    assert more.ratio == pytest.approx(few.ratio)
    assert more.high / more.low < few.high / few.low


@pytest.mark.soak
def test_interval_covers_the_true_value_at_its_level():
    """Equal settings, three pairs and four anchors, with noise of 15 % and a tenth of the runs disturbed."""
    draw, shape = np.random.default_rng(7), (1500 if EVERY_POINT else 200, 10)
    times = draw.normal(0, 0.15, shape) + (draw.random(shape) < 0.1) * draw.uniform(0.4, 1.1, shape)
    found = [pairing(np.exp(row[:3]), np.exp(row[3:6]), 0.95, [np.exp(row[6:])]) for row in times]
    wrong = sum(one.low > 1 or one.high < 1 for one in found) / len(found)
    assert 0.005 < wrong < 0.06


def test_one_disturbed_run_of_each_does_not_hide_a_large_gain():
    quiet, loud = (pairing([1.0, 0.9, 1.1], [0.4, 0.45, 0.42], 0.95), pairing([2.0, 0.9, 1.1], [0.4, 1.1, 0.42], 0.95))
    assert loud.low > 1 and loud.ratio == pytest.approx(quiet.ratio, rel=0.15)


def test_earlier_default_runs_narrow_the_interval_without_drift():
    few = pairing([1.0, 1.4], [0.6, 0.7], 0.95)
    more = pairing([1.0, 1.4], [0.6, 0.7], 0.95, earlier_s=[1.1, 1.2, 1.15, 1.1])
    many = pairing([1.0, 1.4], [0.6, 0.7], 0.95, earlier_s=[1.15] * 40)
    assert more.high / more.low < few.high / few.low
    assert many.high / many.low > math.exp(2 * 0.1)


def test_repeated_tests_keep_their_error_level():
    """Equal settings, up to four pairs, three earlier runs; 15 %, a tenth disturbed, a machine that drifts."""
    draw = np.random.default_rng(3)
    confidence = lambda n: 1 - 2 * NormalDist().cdf(-1.96 * LAST_LOOK * math.sqrt(4 / n))  # noqa: E731
    wrong, cases = 0, 1000 if EVERY_POINT else 100
    for _ in range(cases):
        logs = draw.normal(0, 0.15, 11) + (draw.random(11) < 0.1) * draw.uniform(0.4, 1.1, 11)
        default, tuned, earlier = np.exp(logs[:4]), np.exp(logs[4:8]), np.exp(logs[8:] + draw.normal(0, 0.1))
        found = [pairing(default[:n], tuned[:n], confidence(n), earlier_s=earlier) for n in (2, 3, 4)]
        wrong += any(one.low > 1 for one in found)
    assert wrong / cases <= 0.03


def test_logs_are_named_by_configuration_and_number():
    runs = [run(1, 10.0), run(2, 5.0, A), run(3, 10.0), run(4, None, A, "failed"), run(5, 1.0, replay=True)]
    groups = log_seconds(runs, False)
    assert groups == {(): {1: math.log(10), 3: math.log(10)}, (("a", "1"),): {2: math.log(5)}}
