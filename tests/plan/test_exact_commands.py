"""`forebay plan capacity` and `forebay plan calls`: exact numbers for users."""

import json

import pytest

from forebay.plan.units import exact_bytes

from support.job import Job


@pytest.fixture
def job_class():
    """The program itself."""
    return Job


def answer_of(job, *words):
    done = job.command("plan", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_capacity_gives_nodes_and_nodes_give_capacity(job):
    found = answer_of(job, "capacity", "60TiB", "--machine", "shaheen2")
    assert (found["nodes"], found["grains"], found["is_doubled"]) == (167, 167, False)
    assert found["grains_per_node"] == 16 and found["grains_per_node_exact"] == pytest.approx(16.19, abs=0.005)
    back = answer_of(job, "capacity", "--nodes", "64", "--machine", "shaheen2")
    assert back["granted_bytes"] == 23552 << 30
    assert "capacity=23552GiB pool=wlm_pool" in back["directive"]


def test_doubled_nodes_are_counted_and_warned_of(job):
    assert answer_of(job, "capacity", "200TiB", "--machine", "shaheen2")["nodes_doubled"] == 268
    once = answer_of(job, "capacity", "100TiB", "--machine", "shaheen2")
    assert once["nodes_doubled"] == once["grains"] - 268 > 0
    text = job.command("plan", "capacity", "100TiB", "--machine", "shaheen2").stdout
    assert f"warning: {once['nodes_doubled']} nodes give two granules" in text
    assert "warning" not in job.command("plan", "capacity", "96TiB", "--machine", "shaheen2").stdout


def test_jobs_that_share_nodes_are_named(job):
    words = [word for _ in range(5) for word in ("--job", "23552GiB")]
    found = answer_of(job, "capacity", "--machine", "shaheen2", *words)
    assert [one["shares_with"] for one in found["jobs"]] == [[5], [], [], [], [1]]
    assert (found["nodes_in_use"], found["nodes_shared"]) == (268, 52)


def test_calls_are_the_published_ones(job):
    words = "--size", "50GiB", "--calls", "160", "--ranks", "256", "--other-calls", "11", "--other-bytes", "332B"
    for unit, calls, whole, average in (("8MiB", 6411, 6400, 8374214), ("1MiB", 51211, 51200, 1048350)):
        found = answer_of(job, "calls", *words, "--stripe-size", unit)
        assert (found["system_calls"], found["stripe_sized"], found["average_bytes"]) == (calls, whole, average)
        assert found["collective_calls"] == 40960 and found["total_bytes"] == 53687091532


def test_sizes_are_exact_where_floating_point_is_not():
    assert exact_bytes("9007199254740993B") == 9007199254740993
    assert exact_bytes("0.1GB") == 100_000_000 and exact_bytes("1.5KiB") == 1536
    assert exact_bytes("0.3B") == 1
    assert exact_bytes("5.82TiB") == 6399157673657  # 6399157673656.26


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["capacity", "3PiB", "--machine", "shaheen2"], ["268 storage nodes", "ask for less"]),
        (["capacity", "1TiB", "--machine", "summit"], ["0 storages with a granularity"]),
        (["capacity", "1TiB", "--machine", "cori1", "--storage", "lustre"], ["no granularity"]),
        (["capacity", "--nodes", "0", "--machine", "cori1"], ["0 storage nodes", "1 to 144"]),
        (["capacity", "--nodes", "145", "--machine", "cori1"], ["145 storage nodes", "1 to 144"]),
        (["capacity", "1TiB", "--nodes", "4", "--machine", "cori1"], ["give one of them"]),
        (["capacity", "--machine", "cori1", "--job", "800TB", "--job", "200TB"], ["job 2 needs", "are free"]),
        (["calls", "--size", "1GiB", "--calls", "0", "--stripe-size", "1MiB"], ["0 collective calls"]),
        (["calls", "--size", "1B", "--calls", "5", "--stripe-size", "1MiB"], ["5 collective calls for 1 bytes"]),
        (["calls", "--size", "1GiB", "--calls", "1", "--stripe-size", "1MiB", "--ranks", "0"], ["0 ranks"]),
        (["calls", "--size", "1GiB", "--calls", "1", "--stripe-size", "1MiB", "--servers", "0"], ["--servers is 0"]),
        (["calls", "--size", "1GiB", "--calls", "1", "--stripe-size", "1MiB", "--other-calls", "-1"], ["negative"]),
    ],
)
def test_impossible_question_is_refused_with_the_remedy(job, words, said):
    done = job.command("plan", *words)
    assert done.returncode == 1 and not done.stdout
    for word in said:
        assert word in done.stderr, done.stderr
    assert "\nhint: " in done.stderr and "Traceback" not in done.stderr
