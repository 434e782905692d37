"""What is said of the whole job's run time, from the pairs of runs that decided on I/O time."""

import msgspec
import numpy as np
import pytest

from forebay.report.tuning.sentences import pairing_text
from forebay.tune.model import Pairing, Verdict
from forebay.tune.decide.job_time_gain import job_pairing, with_job_time
from support.plans import run

TUNED = {"cb_nodes": "4"}


def test_one_pair_is_described_without_an_interval():
    one = Pairing(pairs=1, ratio=2.0, low=1.5, high=2.5, confidence=0.9, default_s=2.0, tuned_s=1.0)
    assert one.interval is None and "1.50" not in pairing_text(one) and "1 pair" in pairing_text(one)
    two = msgspec.structs.replace(one, pairs=2)
    assert two.interval == "1.50 to 2.50" and "1.50 to 2.50" in pairing_text(two)


def pairs(default_s, tuned_s, io_s=(2.5, 1.1)):
    """A final round with these run times of the job; `io_s` of them is I/O, by default and tuned."""
    times = [(one, {}, io_s[0]) for one in default_s] + [(one, TUNED, io_s[1]) for one in tuned_s]
    return [
        run(number, configuration, phase="final", seconds=io, io_s=io, job_s=job_s)
        for number, (job_s, configuration, io) in enumerate(times, 1)
    ]


def verdict():
    told = Pairing(pairs=2, ratio=2.3, low=1.9, high=2.8, confidence=0.95, default_s=2.5, tuned_s=1.1)
    return Verdict(recommended=TUNED, reason="2.30 times as fast", pairing=told)


def test_two_pairs_prove_a_small_gain_of_a_steady_job():
    """An eighth of it is I/O: what varies in I/O hardly moves the whole."""
    found = job_pairing(pairs([21.00, 21.04], [19.72, 19.72]), TUNED, 0.95)
    assert found.low > 1 and found.ratio == pytest.approx(21.02 / 19.72, rel=0.01)
    assert (
        "the job as a whole 1.06 times" in with_job_time(verdict(), pairs([21.0, 21.04], [19.72, 19.72]), 0.95).reason
    )


def test_two_pairs_do_not_prove_the_gain_of_a_noisy_job():
    found = job_pairing(pairs([21.00, 21.04], [19.72, 19.72], (20.0, 18.7)), TUNED, 0.95)
    assert found.low < 1 < found.high


def test_equal_run_times_are_rarely_called_different():
    draw = np.random.default_rng(5)
    times = np.exp(draw.normal(0, 0.03, (100, 6)))
    found = [job_pairing(pairs(row[:3], row[3:], (0.1, 0.1)), TUNED, 0.95) for row in times]
    assert sum(one.low > 1 or one.high < 1 for one in found) / len(found) <= 0.05


def test_setting_that_slows_the_job_is_rejected():
    found = with_job_time(verdict(), pairs([20.0, 20.1], [23.0, 23.1]), 0.95)
    assert found.recommended == {} and "the job as a whole is slower" in found.reason


def test_setting_with_which_the_job_took_longer_is_rejected_within_noise():
    found = with_job_time(verdict(), pairs([20.0, 20.1], [20.6, 20.7], (20.0, 19.0)), 0.95)
    assert found.recommended == {} and "the job as a whole took longer" in found.reason
    kept = with_job_time(verdict(), pairs([20.6, 20.7], [20.0, 20.1], (20.0, 19.0)), 0.95)
    assert kept.recommended == TUNED and "lost in its noise" in kept.reason


def test_one_pair_proves_nothing_about_the_job():
    assert job_pairing(pairs([20.0], [19.0]), TUNED, 0.95) is None
