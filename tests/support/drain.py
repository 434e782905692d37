"""Jobs that drain while they compute."""

import json

import pytest

from support.job import DW

OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={}"


@pytest.fixture(params=["directory", "memory"])
def drained(job, request):
    """A job whose directory `out` is staged out to `job.pfs`; its script begins there."""
    job.pfs = job.directory.parent / "pfs"
    if request.param == "memory":
        job.in_memory()
    job.body = lambda *lines: job.script(
        "\n".join(
            [
                'mkdir -p "$DW_JOB_STRIPED/out"',
                'cd "$DW_JOB_STRIPED/out"',
                f"PFS={job.pfs}",
                f'FOREBAY="{job.forebay}"',
                *lines,
            ]
        ),
        DW,
        OUT.format(job.pfs),
    )
    return job


def account(job, *options, **environment):
    done = job.run("--json", *options, **environment)
    assert done.returncode == 0, done.stderr
    job.leaves_nothing()
    return json.loads(done.stdout), done.stderr


def counts(of, *names):
    return [of[name] for name in names]


WAIT = '"$FOREBAY" drain wait --json'
