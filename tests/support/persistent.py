"""A persistent allocation named proj1 in the store of a job."""

import json
import subprocess

from support.job import Job
from support.waiting import wait_until

CREATE = "#BB create_persistent name=proj1 capacity=1MiB access_mode=striped type=scratch"
USE = "#DW persistentdw name=proj1"
DESTROY = "#BB destroy_persistent name=proj1"
STRIPED = "$DW_PERSISTENT_STRIPED_proj1"

# It ends with the directories of its test, whatever becomes of that.
WAIT = 'until [ -e go ] || ! [ -d "$PWD" ]; do sleep 0.02; done'


def listed(job: Job) -> dict[str, dict]:
    done = job.command("persistent", "list", "--json", *job.where)
    assert done.returncode == 0, done.stderr
    return {one["persistent"]: one for one in json.loads(done.stdout)}


def made(job: Job, name: str = "proj1", *more: str):
    done = job.command("persistent", "create", name, "--capacity", "1MiB", *job.where, "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def root(job: Job, name: str = "proj1"):
    return job.store / f"forebay-persistent-{name}"


def assert_job_allocations_removed(job: Job, *names: str):
    """Nothing of a job is left; of the store these allocations are."""
    assert sorted(path.name for path in job.store.iterdir()) == [f"forebay-persistent-{name}" for name in sorted(names)]
    assert list(job.temporary.iterdir()) == []
    assert [path.name for path in job.state.iterdir() if path.suffix == ".json"] == []
    for name in names:
        assert list((root(job, name) / "uses").iterdir()) == []


def ran(job: Job, body: str, *directives: str, options: tuple[str, ...] = ()):
    job.script(body, *directives)
    done = job.run(*options)
    assert done.returncode == 0, done.stderr
    return done


def refused(job: Job, *directives: str, options: tuple[str, ...] = (), body: str = "touch ran"):
    """The error of a job that does not start."""
    job.script(body, *directives)
    done = job.run(*options)
    assert done.returncode == 125, done.stderr
    assert not (job.directory / "ran").exists()
    return done.stderr


def begun(job: Job, script: str, *directives: str, name: str = "proj1") -> subprocess.Popen:
    """A job that has written into the allocation and waits for a file named `go`."""
    lines = ["#!/bin/bash", f"#DW persistentdw name={name}", *directives]
    lines += [f"echo {script} > $DW_PERSISTENT_STRIPED_{name}/{script}", f"touch {script}-runs", WAIT, ""]
    (job.directory / f"{script}.sh").write_text("\n".join(lines))
    process = job.forebay_starts("run", *job.where, f"{script}.sh")

    def runs():
        assert process.poll() is None, process.communicate()
        return (job.directory / f"{script}-runs").exists()

    wait_until(runs)
    return process
