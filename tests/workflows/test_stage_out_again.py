"""The commands of a rule after `forebay run` failed, as examples/workflows has them."""

import pytest
from support.waiting import wait_until
from support.workflows import UNDELIVERED, ended

STEP = """
mkdir -p checkpoint
forebay run --json "$STEPS/simulate.sh" -- "$STEPS/simulate.py" 1 >run.json || "$STEPS/stage-out-again.sh" $? run.json
"""


@pytest.fixture
def unmounted_target(workflow):
    """The file system for the results is not mounted yet."""
    target = workflow.job.directory / "not mounted"
    (workflow.job.directory / "result").symlink_to(target)
    return target


def start(workflow, pauses):
    return workflow.start("bash", "-euo", "pipefail", "-c", STEP, STEPS=str(workflow.steps), PAUSES_S=pauses)


def test_the_stage_out_is_repeated_and_the_job_is_not(workflow, unmounted_target):
    process = start(workflow, "1 " * 60)
    wait_until(workflow.jobs, what="the failed stage-out", process=process)
    unmounted_target.mkdir()
    done = ended(process)
    assert done.returncode == 0, done.stderr
    assert workflow.jobs() == [UNDELIVERED] and [path.name for path in unmounted_target.iterdir()] == ["heat-1.txt"]
    workflow.job.leaves_nothing()


def test_results_that_cannot_be_staged_out_stay_and_the_step_fails(workflow, unmounted_target):
    done = ended(start(workflow, "0"))
    assert done.returncode == 123, done.stderr
    assert workflow.jobs() == [UNDELIVERED] and len(workflow.job.allocations()) == 1
    unmounted_target.mkdir()
    assert workflow.job.command("clean").returncode == 0
    assert [path.name for path in unmounted_target.iterdir()] == ["heat-1.txt"]


def test_the_exit_code_of_a_failed_program_is_that_of_the_step(workflow):
    (workflow.steps / "simulate.py").write_text("raise SystemExit(3)\n")
    done = ended(start(workflow, "0"))
    assert done.returncode == 3, done.stderr
    assert workflow.jobs() == [("simulate.sh", 3)]
