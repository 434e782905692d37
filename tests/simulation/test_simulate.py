"""`forebay plan simulate` as a user types it."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import msgspec
import pytest

from forebay.report.simulation import html
from forebay.simulate.simulation import Simulation
from support import browser
from support.in_process import in_process
from support.strace import few
from support.schemas import complaints
from support.waiting import wait_until

PROJECT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "site" / "site.toml"
SMALL = """
name = "small"
machine = { nodes = 8 }
pool = { size = "80GiB", granularity = "1GiB", servers = 4, bandwidth = "1GiB/s" }
file_system = { bandwidth = "2GiB/s" }
[workload]
jobs = 300
interval = { distribution = "exponential", mean = "60s" }
[[workload.class]]
name = "only"
nodes = { distribution = "choice", values = [1, 2, 4] }
run_time = "2min"
capacity = { distribution = "uniform", low = "1GiB", high = "20GiB" }
stage_in = "1GiB"
"""


@pytest.fixture
def simulate(build, tmp_path, monkeypatch):
    # It would take the alarm that ends a test which hangs.
    monkeypatch.setattr("forebay.cli.plan.simulate.interruptible", contextlib.nullcontext)

    def run(*words, text=SMALL, separately=False):
        (tmp_path / "site.toml").write_text(text)
        forebay, words = build / "bin" / "forebay", ["plan", "simulate", "site.toml", *map(str, words)]
        if separately:
            return subprocess.run([forebay, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        return in_process(forebay, words, tmp_path, {})

    return run


def result_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_pool_is_played_with_every_policy(simulate):
    found = result_of(simulate("--json", "--seed", 3, "--pool", "40GiB,85899345920", "--granularity", "1GiB,4GiB"))
    assert complaints("simulation", found) == []
    rows = [(row["asked_bytes"] >> 30, row["granularity_bytes"] >> 30, row["policy"]) for row in found["rows"]]
    policies = ["fifo", "backfill", "reserve", "stage-ahead"]
    assert rows == [(size, granule, policy) for size in (40, 80) for granule in (1, 4) for policy in policies]
    assert {row["granules"] for row in found["rows"]} == {40, 8, 80, 20}
    assert all(row["outcome"]["jobs"] == 300 for row in found["rows"])


def test_a_seed_repeats_the_result_and_another_one_does_not(simulate):
    words = "--json", "--policy", "backfill"
    first, again, other = (result_of(simulate(*words, "--seed", seed)) for seed in (3, 3, 4))
    assert first == again != other
    unnamed = result_of(simulate(*words))
    assert result_of(simulate(*words, "--seed", unnamed["seed"], separately=True)) == unnamed


def test_larger_pool_shortens_waits_and_the_smallest_that_is_enough_is_named(simulate):
    words = "--seed", 1, "--policy", "reserve", "--pool", "20GiB,60GiB,400GiB"
    found = result_of(simulate(*words, "--json"))
    waits = [row["outcome"]["wait_mean_s"] for row in found["rows"]]
    assert waits == sorted(waits, reverse=True) and waits[0] > 2 * waits[2]
    limit_s = (waits[1] + waits[0]) / 2
    assert result_of(simulate(*words, "--json", "--wait", f"{limit_s}s"))["enough"] == 1
    none = result_of(simulate(*words, "--json", "--wait", "0s"))
    assert (none["enough"], none["course"]) == (None, None)
    assert "No pool is enough: jobs wait " in simulate(*words, "--wait", "0s").stdout


def test_coarse_granules_waste_space(simulate):
    found = result_of(simulate("--json", "--seed", 1, "--policy", "fifo", "--granularity", "1GiB,10GiB"))
    fine, coarse = (row["outcome"]["pool_rounded_up"] for row in found["rows"])
    assert 0 < fine < 0.1 < coarse


@pytest.mark.soak
def test_repetitions_give_an_interval_that_holds_the_mean(simulate):
    (row,) = result_of(simulate("--json", "--seed", 1, "--policy", "fifo", "--repetitions", 5))["rows"]
    assert row["wait_mean_low_s"] < row["outcome"]["wait_mean_s"] < row["wait_mean_high_s"]
    (single,) = result_of(simulate("--json", "--seed", 1, "--policy", "fifo"))["rows"]
    assert single["wait_mean_low_s"] is None


def test_page_stands_alone_and_shows_all_rows(simulate, tmp_path):
    done = simulate(
        "--seed", 1, "--pool", "40GiB,80GiB", "--html", "page.html", text=SMALL.replace('"small"', '"<b>&"')
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    # Each of the two charts also in the width of a phone.
    assert page.count("<svg") == 4 and not re.search(r'(src|href)="(?!data:|#)', page)
    assert "&lt;b&gt;&amp;" in page and "<b>&" not in page
    assert page.count(">stage-ahead</td>") == 2 and "stage-ahead: jobs get their granules" in page
    assert done.stdout.count("stage-ahead") >= 2


@pytest.mark.soak
def test_past_jobs_are_played_and_what_is_missing_is_said(simulate, tmp_path):
    (tmp_path / "past.csv").write_text("submit_s,nodes,run_s,capacity\n0,8,100,2GiB\n1,8,100,90GiB\n2,1,50,\nx,1,1,\n")
    found = result_of(simulate("--json", "--past", "past.csv", "--policy", "fifo"))
    assert complaints("simulation", found) == []
    outcome = found["rows"][0]["outcome"]
    assert (found["jobs"], found["jobs_left_out"], outcome["jobs"], outcome["too_large_for_pool"]) == (3, 1, 2, 1)
    assert outcome["wait_max_s"] == 98
    assert "1 row of past.csv is left out: line 5: column 1 (submit_s): could not" in found["notes"][0]
    assert "nothing is staged" in found["notes"][1]
    refused = simulate("--past", "past.csv", "--jobs", 5)
    assert refused.returncode == 1 and "--jobs and --repetitions are of drawn ones" in refused.stderr


def test_example_of_the_documents_is_played(build):
    command = [build / "bin" / "forebay", "plan", "simulate", EXAMPLE, "--jobs", "500", "--seed", "1", "--json"]
    found = result_of(subprocess.run(command, capture_output=True, text=True, timeout=300))
    assert found["rows"][0]["outcome"]["jobs"] == 500 and found["enough"] is not None


def changed(pattern, text):
    """SMALL with one match replaced."""
    assert len(re.findall(pattern, SMALL)) == 1, pattern
    return re.sub(pattern, text, SMALL)


@pytest.mark.parametrize(
    "text, message",
    [
        (changed("nodes = 8", "nodes = 0"), "machine.nodes is 0, not between 1 and"),
        (changed("nodes = 8", 'nodes = "8"'), r"Expected `int`, got `str` - at `\$.machine.nodes`"),
        (changed("nodes = 8", "nodes = 8, cores = 2"), "unknown field `cores`"),
        (changed('"80GiB"', '"80 apples"'), "pool.size: '80 apples' is no size; write it as 200GiB"),
        (changed('"80GiB"', '"3GiB"'), "a server of 805306368 bytes has no granule of 1073741824 bytes"),
        (changed('"1GiB", servers', '"0B", servers'), "pool.granularity is less than a byte"),
        (changed("servers = 4", "servers = -1"), "pool.servers is -1"),
        (changed('"1GiB/s"', '"1GiB"'), "pool.bandwidth: '1GiB' is no rate; write it as 5GB/s"),
        (changed('"2GiB/s"', '"0GiB/s"'), "file_system.bandwidth: '0GiB/s' is no rate"),
        (changed("jobs = 300", "jobs = 0"), "workload.jobs is 0, not between 1 and"),
        (changed('mean = "60s"', 'mean = "60"'), "workload.interval: '60' is no time; write it as 30min"),
        (changed('"exponential"', '"normal"'), "Invalid value 'normal'"),
        (changed(r"\[1, 2, 4\]", "[]"), "workload.class 'only': nodes: values is empty"),
        (changed(r"\[1, 2, 4\]", "[1], weights = [1, 2]"), "2 weights for 1 values"),
        (changed(r"\[1, 2, 4\]", "[1], weights = [0]"), "not all of them zero"),
        (changed('"2min"', '{ distribution = "lognormal", median = "1h", sigma = 9000.0 }'), "infinite values"),
        (changed('"2min"', '{ distribution = "lognormal", median = "1h", sigma = nan }'), "sigma nan"),
        (changed('low = "1GiB", high', 'low = "21GiB", high'), "low '21GiB' is more than high '20GiB'"),
        (changed('name = "only"', 'name = "only"\nshare = -1.0'), "the shares are not all above zero"),
        (changed('name = "only"', 'name = "only"\nspeed = 2'), "unknown field `speed`"),
        (SMALL.partition("[workload]")[0], "small: no jobs are described"),
        (SMALL + "[past]\nstage_in_share = 2.0\n", "past.stage_in_share is 2.0, not between 0 and 1"),
        ("name = ", "Invalid value"),
        ("", "missing required field `name`"),
    ],
)
def test_description_that_is_wrong_is_refused_with_its_place(simulate, text, message):
    done = simulate("--json", text=text)
    assert done.returncode == 1, done.stdout
    assert re.search(message, done.stderr) and "hint: " in done.stderr, done.stderr
    assert complaints("error", json.loads(done.stdout)) == []


@pytest.mark.parametrize(
    "words, message",
    few(
        (["--pool", "1TiB,x"], "--pool: 'x' is no size"),
        (["--pool", "1GiB"], "has no granule"),
        (["--granularity", "0B"], "less than a byte"),
        (["--policy", "lifo"], "--policy 'lifo': there is no such policy"),
        (["--wait", "soon"], "--wait: 'soon' is no time"),
        (["--past", "missing.csv"], "missing.csv: cannot be read"),
        (["--html", "no/where.html", "--jobs", "3"], "no/where.html: No such file or directory"),
        (["--repetitions", "100", "--pool", "1TiB,2TiB,3TiB"], "1200 plays are more than 1000"),
        kept=3,
    ),
)
def test_option_that_is_wrong_is_refused(simulate, words, message):
    done = simulate(*words)
    assert done.returncode == 1 and message in done.stderr and "hint: " in done.stderr, done.stderr


def test_interrupted_simulation_writes_no_page(build, tmp_path):
    (tmp_path / "site.toml").write_text(SMALL)
    command = [build / "bin" / "forebay", "plan", "simulate", "site.toml", "--jobs", "400000", "--html", "page.html"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(
                lambda: b"simulate" in pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes(), process=process
            )
            caught = f"/proc/{process.pid}/status"
            # Bit 14 of the caught signals is SIGTERM's: the command has installed its handlers.
            wait_until(
                lambda: int(re.search(r"SigCgt:\s*(\w+)", pathlib.Path(caught).read_text())[1], 16) >> 14 & 1,
                process=process,
            )
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=120)
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 128 + signal.SIGTERM and "interrupted" in err
    assert os.listdir(tmp_path) == ["site.toml"]


@pytest.mark.soak
def test_table_of_the_page_fits_a_desktop_and_scrolls_in_its_own_box_on_a_phone(simulate, tmp_path):
    found = msgspec.convert(result_of(simulate("--seed", 1, "--json", "--jobs", 20)), Simulation)
    for row in found.rows:
        row.pool_bytes, row.granularity_bytes = 799 << 40, 203 << 30
        row.outcome.wait_mean_s, row.outcome.wait_p95_s = 359.2 * 3600, 666.2 * 3600
        row.outcome.doubled, row.outcome.staging_node_hours = 100_000, 123_456.0
    page = tmp_path / "page.html"
    page.write_text(html(found))
    inner = "[...document.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth)"
    outer = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with browser.started() as chromium:
        for width, fits in ((1280, True), (400, False)):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            chromium.ask("Emulation.setDeviceMetricsOverride", **size)
            chromium.open(page)
            (hidden_px,) = chromium.evaluate(inner)
            assert (hidden_px == 0) == fits and chromium.evaluate(outer) == 0, width
