"""Whenever the tuner ends, what was measured is kept, nothing is left, and the next one goes on."""

import json
import time

import pytest

from support.job import INTERRUPT, KILL
from support.tuner import EMULATED, WITHOUT_BUFFERING


def until(reached, process) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the moment never came"
        time.sleep(0.01)


def test_after_kill_9_at_most_the_running_trial_is_lost(tuned):
    tuned.btio(before=WITHOUT_BUFFERING)
    process = tuned.start(*EMULATED, "--budget", "6")
    until(lambda: len(tuned.runs()) >= 2, process)
    process.send_signal(KILL)
    process.stdout.close()
    process.stderr.close()
    process.wait()
    tuned.leaves_no_process()
    before = tuned.runs()
    status, _, err = tuned.tune()
    assert status == 0, err
    after = tuned.runs()
    assert after[: len(before)] == before
    assert [run.number for run in after] == list(range(1, len(after) + 1))
    assert len(after) <= 6
    assert [run.phase for run in after].count("default") == 1


def test_a_tuner_that_goes_on_leaves_the_second_place_its_share(tuned):
    tuned.btio(before=WITHOUT_BUFFERING, out="${DW_JOB_STRIPED:-$PWD/}")
    process = tuned.start(*EMULATED, "--budget", "8")
    until(lambda: len(tuned.runs()) >= 2, process)
    process.send_signal(KILL)
    process.stdout.close()
    process.stderr.close()
    process.wait()
    tuned.leaves_no_process()
    status, _, err = tuned.tune("--budget", "8")
    assert status == 0, err
    assert tuned.study().plans["file-system"].runs_max == 4


def waiting_after(phase: str) -> str:
    """A job's line: it hangs in each run that begins once the study has one of this phase that nothing has disturbed."""
    study = '"$(dirname "$PWD")/study.jsonl"'
    return f"grep '\"phase\":\"{phase}\"' {study} | grep -qv '\"status\":\"contaminated\"' && sleep 300"


@pytest.mark.parametrize("phase", ["default", "probe", "final"])
def test_ctrl_c_in_any_phase(tuned, phase):
    wait = "sleep 300" if phase == "default" else waiting_after(phase)
    tuned.btio(before=f"{WITHOUT_BUFFERING}\n{wait}")
    process = tuned.start(*EMULATED, "--budget", "9", "--seed", "1", "--json")

    def begun():
        if phase == "default":
            return (tuned.study_directory / "runs" / "0001" / "output.txt").exists()
        return any(run.phase == phase and run.status != "contaminated" for run in tuned.runs())

    until(begun, process)
    process.send_signal(INTERRUPT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == json.loads(out)["exit_code"] == 130, err
    assert "error: interrupted: what was measured is kept\nhint: " in err and "Traceback" not in err
    study = tuned.study()
    assert study.ends[-1].reason == "interrupted"
    assert not tuned.tuned.exists()
    assert not (tuned.study_directory / "work").exists()
    if phase != "default":
        assert "best so far on the file system, not proven" in err
    tuned.leaves_no_process()
    tuned.job.leaves_nothing()


def test_a_killed_tuner_of_a_job_that_names_its_directory_leaves_nothing_to_the_next(tuned):
    begun = tuned.job.temporary.parent / "begun"
    tuned.btio(before=f"cd '{tuned.directory}'\necho >> '{begun}'\n[ $(wc -l < '{begun}') -gt 1 ] || sleep 300")
    process = tuned.start(*EMULATED, "--budget", "1")
    until(begun.exists, process)
    assert list(tuned.job.temporary.glob("forebay-tune-*")), "records are made there"
    process.send_signal(KILL)
    process.stdout.close()
    process.stderr.close()
    process.wait()
    tuned.tune()
    assert [run.status for run in tuned.runs()] == ["ok"]
    tuned.leaves_no_process()
    tuned.job.leaves_nothing()
