"""`forebay bench io500` in a batch script: its ranks are the tasks of the job, on the nodes of the job."""

import json

import pytest

from support.mpi import LAUNCHING


@pytest.mark.soak
def test_tasks_of_the_job_run_on_its_nodes_without_any_option(roots):
    variables = "\n".join(f"export {name}={value}" for name, value in LAUNCHING.items())
    bench = "forebay bench io500 --json --stonewall 1 --data 64MiB --results results data"
    roots.script(f"{variables}\nmkdir data\n{bench}")
    job = roots.submit("--nodes=2", "--ntasks-per-node=2")
    assert roots.wait(job) == "COMPLETED", roots.stderr_text()
    run = json.loads(roots.stdout_text())
    assert (run["ranks"], len(run["nodes"]), run["shift"]) == (4, 2, 2)
    assert [phase["verified"] for phase in run["phases"] if phase["verified"] is not None] == [True] * 6
    assert list((roots.directory / "data").iterdir()) == []
    assert (roots.directory / "results" / "result_summary.txt").exists()
