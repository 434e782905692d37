"""Whenever the tuner ends, what was measured is kept, nothing is left, and the next one goes on."""

import json

import pytest

from support.job import INTERRUPT
from support.tuner import DW, EMULATED, hanging_after
from support.waiting import wait_until


@pytest.fixture
def begun(tuned):
    """A directory that a run makes when it hangs."""
    return tuned.temporary.parent / "begun"


def killed(process) -> None:
    process.kill()
    process.communicate()


def test_tune_killed_loses_at_most_the_running_trial(tuned, begun):
    tuned.app(before=hanging_after("probe", f"mkdir {begun} && sleep 300"))
    process = tuned.start(*EMULATED, "--budget", "6")
    wait_until(begun.exists, what="a run after the probe", process=process)
    before = tuned.runs()
    killed(process)
    tuned.leaves_nothing()
    tuned.tunes()
    after = tuned.runs()
    assert len(before) == 2 and after[:2] == before
    assert [run.number for run in after] == list(range(1, len(after) + 1))
    assert len(after) <= 6
    assert tuned.phases().count("default") == 1


@pytest.mark.soak
def test_continued_tune_reserves_the_share_of_the_second_storage(tuned, begun):
    tuned.app(
        before=hanging_after("probe", f"mkdir {begun} && sleep 300"), out="${DW_JOB_STRIPED:-$PWD/}", directive=DW
    )
    process = tuned.start(*EMULATED, "--budget", "8")
    wait_until(begun.exists, what="a run after the probe", process=process)
    killed(process)
    tuned.leaves_nothing()
    tuned.tunes("--budget", "8")
    assert tuned.study().plans["file-system"].runs_max == 4


@pytest.mark.parametrize("phase", ["default", "probe", "final"])
def test_tune_interrupted_in_any_phase_keeps_its_runs_and_leaves_nothing(tuned, begun, phase):
    hangs = f"mkdir {begun}; sleep 300"
    tuned.app(before=hangs if phase == "default" else hanging_after(phase, hangs))
    process = tuned.start(*EMULATED, "--budget", "9", "--seed", "1", "--json")
    wait_until(begun.exists, what=f"the phase {phase}", process=process)
    process.send_signal(INTERRUPT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == json.loads(out)["exit_code"] == 130, err
    assert "error: interrupted: what was measured is kept\nhint: " in err and "Traceback" not in err
    assert tuned.study().ends[-1].reason == "interrupted"
    assert tuned.phases()[-1:] == ([] if phase == "default" else [phase])
    assert not tuned.tuned.exists()
    assert not (tuned.study_directory / "work").exists()
    assert ("best so far on the file system, not proven" in err) == (phase != "default")
    tuned.leaves_nothing()


@pytest.mark.soak
def test_tune_killed_with_a_mapped_directory_does_not_affect_the_next(tuned, begun):
    tuned.app(before=f"cd '{tuned.directory}'\nmkdir {begun} && sleep 300")
    process = tuned.start(*EMULATED, "--budget", "1")
    wait_until(begun.exists, what="the first run", process=process)
    assert list(tuned.temporary.glob("forebay-tune-*")), "records are made there"
    killed(process)
    tuned.tune()
    assert [run.status for run in tuned.runs()] == ["ok"]
    tuned.leaves_nothing()
