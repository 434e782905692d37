"""What the watch of a drain does not see is never said to have arrived."""

import json
import os

import pytest

from support.job import DW

OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={}"
WAIT = '"$FOREBAY" drain wait --json > "$SLURM_SUBMIT_DIR/waited"; echo $? > "$SLURM_SUBMIT_DIR/code"'


@pytest.fixture
def drained(job):
    """A job that drains what is closed in `out`; what it says of that, its account, and what it warned of."""
    job.pfs = job.directory.parent / "pfs"

    def run_watched(*lines, by=None, words=()):
        body = ['mkdir "$DW_JOB_STRIPED/out"; cd "$DW_JOB_STRIPED/out"', f'FOREBAY="{job.forebay}"', *lines]
        job.script("\n".join(body), DW, OUT.format(job.pfs))
        real, job.forebay = job.forebay, by or job.forebay
        run = ["run", *job.where, "--json", "--drain", "*.nc", "job.sh"]
        try:
            done = job.command(*words, *([real] if by else []), *run)
        finally:
            job.forebay = real
        assert done.returncode == 0, done.stderr
        job.leaves_nothing()
        read = lambda name: json.loads((job.directory / name).read_text())  # noqa: E731
        return read("waited"), read("code"), json.loads(done.stdout), done.stderr

    job.run_watched = run_watched
    return job


def test_files_closed_in_unwatchable_directory_are_not_reported_as_arrived(drained):
    """A user namespace that may have one watch: the namespace of the job has it, and `out` comes later."""
    limited = 'echo 1 > /proc/sys/user/max_inotify_watches && exec "$0" "$@"'
    words = ["--user", "--map-root-user", "sh", "-c", limited]
    status, code, account, said = drained.run_watched("echo 1 > a.nc", WAIT, by="unshare", words=words)
    ((path, reason),) = status["failures"]
    assert code == 1 and path.endswith("/out") and "not seen" in reason and "No space left" in reason
    assert "its files wait for stage-out" in said
    # The look through the directory at the end finds the file: the drain may copy it before the stage-out does.
    assert account["stage_out"]["files"] == 1
    assert (drained.pfs / "a.nc").read_text() == "1\n"


def meddling(what, path, error, when, *lines):
    """What a job runs while such calls of its `forebay run` on that path fail."""
    if os.getuid() != 0:
        pytest.skip("only root may trace the process that started it")
    inject = f"-e trace={what} -e inject={what}:error={error}:when={when}"
    return [
        f"strace -f -qq -o /dev/null -p $PPID -P {path} {inject} & tracer=$!",
        "while cat /proc/$PPID/task/*/status | grep -q TracerPid:.0; do kill -0 $tracer || exit 9; done",
        *lines,
        f"{WAIT}; kill $tracer; wait $tracer; true",
    ]


@pytest.mark.parametrize(("when", "enqueued"), [("1..3", 1), ("1..8", 0)])
def test_unopenable_file_is_retried_and_not_reported_as_arrived(drained, when, enqueued):
    """Each thread has its own count of calls: the watch tries eight times, and who copies fails at once."""
    lines = meddling("open", '"$PWD/a.nc"', "EMFILE", when, "echo 1 > new", "mv new a.nc")
    status, code, account, _ = drained.run_watched(*lines)
    ((path, reason),) = status["failures"]
    assert (code, status["enqueued"], status["failed"], status["superseded"]) == (1, enqueued, enqueued, 0), status
    assert path.endswith("/out/a.nc") and "Too many open files" in reason
    assert (account["stage_out"]["files"], account["stage_out"]["unchanged_files"]) == (1, 0)
    assert (drained.pfs / "a.nc").read_text() == "1\n"


def test_files_closed_after_the_watch_ended_are_not_reported_as_arrived(drained):
    lines = meddling("read", "anon_inode:inotify", "EIO", "1+", "echo 1 > a.nc")
    status, code, account, said = drained.run_watched(*lines)
    ((path, reason),) = status["failures"]
    assert code == 1 and path.endswith("/striped") and "Input/output error" in reason, status
    assert "the rest waits for stage-out" in said
    assert (account["stage_out"]["files"], account["stage_out"]["unchanged_files"]) == (1, 0)
    assert (drained.pfs / "a.nc").read_text() == "1\n"
