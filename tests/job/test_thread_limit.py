"""Near the limit of processes (`ulimit -u`): whatever thread cannot be started, no run panics, hangs or loses results."""

import os
import subprocess

import pytest

from support.job import DW
from support.strace import points

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="the limit counts all processes of a user: it takes one of its own"
)
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/ destination=%d/out"
#: Beyond it the job has all its threads.
LIMIT_MAX = 40


@pytest.fixture
def limited(job, worker_id):
    """Runs forebay as a user whom nobody else is, with so many processes and threads at most."""
    user = 61000 + int(worker_id.removeprefix("gw") or 0) if worker_id != "master" else 61000
    job.user = user
    for directory in (job.directory, job.store, job.temporary, job.state):
        os.chown(directory, user, user)

    def run(limit: int, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["/bin/bash", "-c", f'ulimit -u {limit}; exec "$0" "$@"', job.forebay, *words],
            cwd=job.directory,
            env=job.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            user=user,
            group=user,
            extra_groups=[],
        )

    return run


@pytest.mark.soak
@pytest.mark.parametrize("first", points(4))
def test_run_with_any_number_of_threads_keeps_its_promises(job, limited, first):
    job.script('echo result > "$DW_JOB_STRIPED/a"; forebay drain wait; exit 0', DW, OUT)
    ended_well = 0
    for limit in range(first, LIMIT_MAX, 4):
        done = limited(limit, "run", "--json", *map(str, job.where), "--drain", "*", "--on-close", "*=true", "job.sh")
        assert "panicked" not in done.stderr and done.returncode != 101, (limit, done.stderr)
        result = job.directory / "out" / "a"
        if '"job_status":0' in done.stdout:
            assert result.read_text() == "result\n", (limit, done.returncode, done.stderr)
            ended_well += done.returncode == 0
            result.unlink()
        else:
            assert done.returncode != 0 and "error: " in done.stderr, (limit, done.stderr)
        job.command("clean")
        job.leaves_nothing()
    assert ended_well > 0


def test_error_names_the_limit(job, limited):
    job.script("true", DW)
    done = limited(1, "run", *map(str, job.where), "job.sh")
    assert done.returncode == 125 and "ulimit -u" in done.stderr, done.stderr


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_staging_with_hardly_any_threads_copies_all(job, limited, limit):
    tree = job.directory / "tree"
    for number in range(20):
        (tree / str(number)).mkdir(parents=True)
        (tree / str(number) / "file").write_text(str(number))
    done = limited(limit, "stage", "in", "tree", "copy")
    assert "panicked" not in done.stderr
    if done.returncode == 0:
        assert sum(1 for path in (job.directory / "copy").rglob("file")) == 20
    else:
        assert "ulimit -u" in done.stderr, done.stderr
