"""A job that is killed while its script waits."""

import json

from support.job import DW, KILL
from support.waiting import wait_until

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
# Writes, says so, and waits to be let go on.
BODY = (
    "mkdir $DW_JOB_STRIPED/out; echo result > $DW_JOB_STRIPED/out/x; touch wrote; until [ -e go ]; do sleep 0.01; done"
)


def status(job) -> list[dict]:
    return json.loads(job.command("status", "--json").stdout)


def killed_while_it_runs(job) -> dict:
    """Starts the job, kills `forebay run` when it has written, and lets the job's own processes end."""
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (shown,) = status(job)
    (job.directory / "go").touch()
    return shown


def when_the_job_has_ended(job):
    wait_until(lambda: not status(job)[0]["processes"])
