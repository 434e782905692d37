"""The grids: what is run, how often, and that the files in bench/grids are what they say."""

import json
import os
import pathlib
import sys

import msgspec
import pytest

from forebay.profiles.sources import open_path
from forebay.tune.model import Parameter, Verdict, key
from support.plans import run as tuner_run

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(PROJECT / "bench"))

import grid as gridding  # noqa: E402
import live  # noqa: E402
from grid_kernels import Grid, grids, rendered  # noqa: E402

sys.path.remove(str(PROJECT / "bench"))  # its modules must not hide folders of tests

FILES = sorted(gridding.RESULTS.glob("*-*.jsonl"))
each_grid = pytest.mark.parametrize("grid", list(grids()), ids=lambda grid: grid.name)
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@each_grid
def test_configurations_differ_in_effect(grid):
    configurations = grid.configurations()
    assert configurations[0] == {}
    assert len({key(one) for one in configurations}) == len(configurations)
    assert all(grid.canonical(one) == one for one in configurations)


def test_settings_without_effect_are_omitted():
    (grid,) = (grid for grid in grids() if grid.name == "vpic-lustre")
    on = "vpic.h5:romio_cb_write"
    assert grid.canonical({"vpic.h5:cb_nodes": "8", "lfs_stripe_count": "4"}) == {"lfs_stripe_count": "4"}
    assert grid.canonical({"vpic.h5:cb_nodes": "8", on: "enable"}) == {"vpic.h5:cb_nodes": "8", on: "enable"}


def test_configuration_becomes_hints_and_striping():
    configuration = {"wrfout*:cb_nodes": "4", "wrfout*:romio_ds_write": "disable", "wrfbdy*:romio_cb_read": "disable"}
    hints, striping = rendered(configuration | {"lfs_stripe_count": "8", "lfs_stripe_size": "65536"})
    assert hints == "wrfbdy*:romio_cb_read=disable,wrfout*:cb_nodes=4:cb_config_list=#*:*#:romio_ds_write=disable"
    assert striping == ["-c", "8", "-S", "65536"]


def run(configuration, io_s, status="ok"):
    return {"configuration": configuration, "io_s": io_s, "job_s": 1.0, "status": status}


def test_fastest_configurations_are_run_most(tmp_path):
    runs = gridding.Runs(tmp_path / "runs.jsonl")
    for seconds in [1.0, 1.1, 1.2, 1.1]:
        runs.add(run({}, 1.2 * seconds))
        runs.add(run({"a": "1"}, seconds))
        runs.add(run({"a": "2"}, 1.5 * seconds))
    assert [runs.wanted(one) for one in ({"a": "1"}, {"a": "2"})] == [True, False]
    runs.add(run({"a": "1"}, 1.1))
    assert not runs.wanted({"a": "1"})


def test_third_repeat_only_where_two_differ(tmp_path):
    runs = gridding.Runs(tmp_path / "runs.jsonl")
    best, near, far, slow, ended = {"a": "0"}, {"a": "1"}, {"a": "2"}, {"a": "3"}, {"a": "4"}
    assert runs.wanted({})
    fast = [run(best, 0.2), run(near, 0.5), run(far, 0.5)]
    for one in [run({}, 1.0), *fast, run(slow, 3.5), run(ended, None, "limit")]:
        runs.add(one)
    assert [runs.wanted(one) for one in (near, far, slow, ended)] == [True, True, False, False]
    runs.add(run(near, 0.54))
    runs.add(run(far, 0.56))
    again = gridding.Runs(tmp_path / "runs.jsonl")
    assert [again.wanted(one) for one in (near, far)] == [False, True]


def test_kernel_run_leaves_only_its_figures(build, tmp_path):
    grid = Grid("replib", "lustre-small", 2, ("replib", "-c", "2", "-t", "0"), {}, {}, {"input": "text"})
    (tmp_path / "inputs").mkdir()
    gridding.make_idle(build)
    gridding.prepare(grid, build, tmp_path / "inputs")
    made = gridding.one_run(grid, {}, build, tmp_path)
    assert made["status"] == "ok" and 0 < made["io_s"] < made["job_s"]
    assert [path.name for path in tmp_path.iterdir()] == ["inputs"]


def test_run_beyond_its_limit_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(gridding, "ENDING_S", 0.1)
    words = ["sh", "-c", "echo $$ > pid; sleep 60"]
    assert gridding.measured(words, tmp_path, dict(os.environ), limit_s=2)["status"] == "limit"
    assert not pathlib.Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_failed_kernel_is_reported_with_its_output(tmp_path):
    made = gridding.measured(["sh", "-c", "echo no space >&2; exit 1"], tmp_path, dict(os.environ), limit_s=5)
    assert made["status"] == "failed" and "no space" in made["reason"] and made["io_s"] is None


@each_file
def test_recorded_grid_is_complete(path):
    head, *rows = map(json.loads, path.read_text().splitlines())
    (grid,) = (grid for grid in grids() if grid.name == path.stem)
    assert msgspec.convert(head["parameters"], list[Parameter]) == grid.parameters()
    assert [row["configuration"] for row in rows] == grid.configurations()
    assert {row["status"] for row in rows} <= {"ok", "limit", "failed"}
    assert all(row["seconds"] for row in rows if row["status"] == "ok")
    assert live.grid_gain(path) >= 1


@each_file
def test_record_of_a_default_run_can_be_read(path):
    head = json.loads(path.read_text().splitlines()[0])
    profile = open_path(path.with_name(head["record"]))
    assert [program.ranks for program in profile.programs] == [head["ranks"]]
    assert profile.job.emulated == head["model"]


def test_search_result_is_that_of_its_final_round():
    best = {"x:cb_nodes": "8"}
    made = [("default", {}, 9.0), ("final", {}, 2.0), ("final", best, 0.5), ("final", best, 0.5), ("final", {}, 2.0)]
    runs = [tuner_run(n, one, phase=phase, io_s=io_s) for n, (phase, one, io_s) in enumerate(made)]
    said = msgspec.to_builtins(Verdict(recommended=best, reason="faster"))
    verdict = {"verdict": {"place": "file-system", "verdict": said}}
    lines = [{"forebay_tune": 1}, *({"run": msgspec.to_builtins(one)} for one in runs), verdict]
    found = live.outcome("x", "\n".join(map(json.dumps, lines)), gain=5.0)
    assert (found.runs, found.recommended, found.gain, found.over_best) == (5, best, 4.0, 1.25)
