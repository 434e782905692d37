"""Destinations of stage_out lines are checked before the job starts, also in a dry run."""

import os
import subprocess

import pytest

from support.job import DW, NOBODY

ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and changes its user")
FILE = "#DW stage_out type=file source=$DW_JOB_STRIPED/{} destination={}"
DIRECTORY = "#DW stage_out type=directory source=$DW_JOB_STRIPED/{} destination={}"


def refused(job, *lines: str, said: str) -> None:
    """Refused before the script starts, in a dry run too."""
    job.script("touch ran", DW, *lines)
    for options in ((), ("--dry-run",)):
        done = job.run(*options)
        assert done.returncode == 125 and said in done.stderr, done.stderr
        assert "destination=" in done.stderr
    assert not (job.directory / "ran").exists()
    job.leaves_nothing()


@pytest.mark.parametrize(
    "lines",
    [
        (FILE.format("a", "%d/x"), FILE.format("b", "%d/x")),
        (FILE.format("a/x", "%d/"), FILE.format("b/x", "%d")),
        (FILE.format("a", "%d/x"), DIRECTORY.format("b", "%d/x")),
        (DIRECTORY.format("b", "%d/x/"), FILE.format("a", "%d/./x")),
    ],
)
def test_second_line_with_one_destination_is_refused(job, lines):
    refused(job, *lines, said="goes already")


def test_directories_with_one_destination_are_merged(job):
    job.script(
        'cd "$DW_JOB_STRIPED"; mkdir a b; echo a > a/1; echo b > b/2',
        DW,
        DIRECTORY.format("a", "%d/out"),
        DIRECTORY.format("b", "%d/out"),
    )
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (job.directory / "out").iterdir()) == ["1", "2"]


def test_destination_of_another_kind_is_refused(job):
    (job.directory / "file").write_text("")
    (job.directory / "tree" / "a").mkdir(parents=True)
    os.mkfifo(job.directory / "fifo")
    refused(job, DIRECTORY.format("a", "%d/file"), said="is a file, and the source a directory")
    refused(job, FILE.format("a", "%d/file/below"), said="is a file")
    refused(job, FILE.format("a", "%d/tree"), said="is a directory, and the source a file")
    refused(job, FILE.format("a", "%d/fifo"), said="is no regular file")


@pytest.mark.parametrize("place", ["/proc/out", "/sys/kernel/out"])
def test_destination_in_a_file_system_of_the_kernel_is_refused(job, place):
    refused(job, FILE.format("a", place), said="/")


@ONLY_ROOT
def test_destination_that_cannot_be_written_is_refused(job):
    closed = job.directory / "closed"
    closed.mkdir(mode=0o755)
    job.as_nobody()
    os.chown(closed, 0, 0)
    refused(job, DIRECTORY.format("a", "%d/closed/out"), said="Permission denied")
    refused(job, FILE.format("a", "%d/closed/out"), said="Permission denied")


@ONLY_ROOT
def test_destination_with_less_room_than_the_burst_buffer_is_a_warning(job):
    small = job.directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    try:
        job.script("true", DW, DIRECTORY.format("a", "%d/small/out"))
        done = job.run("--dry-run")
        assert done.returncode == 0, done.stderr
        assert "1.00 MiB free, less than the 64.00 MiB of the burst buffer" in done.stderr
    finally:
        subprocess.run(["umount", small], check=True)


@ONLY_ROOT
def test_one_cause_of_a_thousand_failures_is_one_line(job):
    (job.directory / "out").mkdir()
    job.as_nobody()
    os.chown(job.directory / "out", NOBODY, NOBODY)
    job.script(
        'chmod 555 out; mkdir "$DW_JOB_STRIPED/a"; cd "$DW_JOB_STRIPED/a"; touch $(seq 1 1000)',
        DW,
        DIRECTORY.format("a", "%d/out"),
    )
    done = job.run()
    assert done.returncode == 123, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("error: stage out:")]
    assert len(told) == 1 and "and 999 more for the same reason" in told[0], done.stderr


def test_patterns_that_no_file_matched_are_named(job):
    job.script('echo a > "$DW_JOB_STRIPED/a.nc"; sleep 0.5', DW, DIRECTORY.format("", "%d/out"))
    done = job.run("--drain", "*.nc,*.h5", "--on-close", "*.nc=true", "--on-close", "*.txt=true")
    assert done.returncode == 0, done.stderr
    assert "drain: no file that was closed matched *.h5" in done.stderr
    assert "on close: no file that was closed matched *.txt" in done.stderr
    assert "matched *.nc" not in done.stderr
