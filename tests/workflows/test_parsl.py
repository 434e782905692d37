"""The example pipeline under Parsl."""

import pytest
from support.waiting import wait_until
from support.workflows import ANALYSED, SECONDS, UNDELIVERED, ended


@pytest.fixture
def parsl(workflow):
    # Parsl starts its workers by a shell and does not quote their directory.
    workflow.directory = workflow.job.directory.parent / "pipeline"
    workflow.directory.mkdir()
    return workflow


def test_a_step_that_times_out_resumes(parsl, tools):
    parsl.slow_down_first_attempts()
    done = parsl.run("python", parsl.example / "parsl" / "pipeline.py", 2, SECONDS, tools=tools)
    assert done.returncode == 0, done.stderr
    parsl.assert_resumed_and_analysed()


@pytest.mark.soak
def test_results_not_staged_out_are_copied_later_without_another_run(parsl, tools):
    member = parsl.directory / "members" / "1"
    member.mkdir(parents=True)
    (member / "result").symlink_to(parsl.directory / "not mounted")
    command = ["python", parsl.example / "parsl" / "pipeline.py", 1, 60]
    process = parsl.start(*command, tools=tools, PAUSES_S="1 " * 60)
    wait_until(parsl.jobs, what="the failed stage-out", process=process)
    assert parsl.jobs() == [UNDELIVERED]
    (parsl.directory / "not mounted").mkdir()
    done = ended(process)
    assert done.returncode == 0, done.stderr
    assert (parsl.directory / "summary.csv").read_text() == "member,mean\n1,4.105241\n"
    assert parsl.jobs() == [UNDELIVERED, ANALYSED]
    assert parsl.job.allocations() == []
