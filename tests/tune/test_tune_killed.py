"""Whenever the tuner ends, what was measured is kept, nothing is left, and the next one goes on."""

import time

import pytest

from job import INTERRUPT, KILL
from tune.tuned import EMULATED, WITHOUT_BUFFERING


def until(reached, process) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the moment never came"
        time.sleep(0.01)


def test_after_kill_9_at_most_the_running_trial_is_lost(tuned):
    tuned.btio(before=WITHOUT_BUFFERING)
    process = tuned.start(*EMULATED, "--budget", "9")
    until(lambda: len(tuned.runs()) >= 3, process)
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
    assert len(after) <= 9
    assert [run.phase for run in after].count("default") == 1


@pytest.mark.parametrize("phase", ["default", "search", "final"])
def test_ctrl_c_in_any_phase(tuned, phase):
    tuned.btio(before=WITHOUT_BUFFERING)
    process = tuned.start(*EMULATED, "--budget", "9", "--seed", "1")
    begun = {
        "default": lambda: (
            tuned.study_directory / "runs" / "0001" / "output.txt"
        ).exists(),
        "search": lambda: len(tuned.runs()) >= 2,
        "final": lambda: any(run.phase == "final" for run in tuned.runs()),
    }[phase]
    until(begun, process)
    process.send_signal(INTERRUPT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted: what was measured is kept" in err and "Traceback" not in err
    study = tuned.study()
    assert study.ends[-1].reason == "interrupted"
    assert not tuned.tuned.exists()
    assert not (tuned.study_directory / "work").exists()
    if phase != "default":
        assert "best so far on the file system, not proven" in err
    tuned.leaves_no_process()
    tuned.job.leaves_nothing()
