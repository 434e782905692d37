"""What another user of the machine can prepare: occupied ids, locks, links and names."""

import fcntl
import os
import sqlite3
import subprocess
import time

import pytest

from support.job import DW, NOBODY
from support.persistent import CREATE, USE, root
from support.strace import strace
from support.waiting import wait_until

OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/ destination=%d/out"
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")


@pytest.mark.soak
def test_occupied_ids_do_not_refuse_a_job(job):
    now = time.time_ns() // 1_000_000
    for number in range(now, now + 5000):
        (job.temporary / f"forebay-{number}").mkdir()
    job.script('echo result > "$DW_JOB_STRIPED/a"', DW, OUT)
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert (job.directory / "out" / "a").read_text() == "result\n"


def test_foreign_lock_is_not_called_a_destruction(job):
    job.script("true", CREATE)
    assert job.run().returncode == 0
    job.script("true", USE)
    lock = os.open(root(job), os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    done = job.run()
    os.close(lock)
    assert done.returncode == 125 and "is locked by another process" in done.stderr, done.stderr
    assert "being destroyed" not in done.stderr and "/proc/locks" in done.stderr
    assert job.run().returncode == 0


def test_namespace_that_is_a_link_is_not_followed(job):
    job.script("true", CREATE)
    assert job.run().returncode == 0
    elsewhere = job.directory / "elsewhere"
    namespace = root(job) / "striped"
    namespace.rename(elsewhere)
    namespace.symlink_to(elsewhere)
    job.script('touch "$DW_PERSISTENT_STRIPED_proj1/a"', USE)
    done = job.run()
    assert done.returncode == 125 and "its namespace is no directory of its owner" in done.stderr, done.stderr
    assert list(elsewhere.iterdir()) == []


@ONLY_ROOT
@pytest.mark.parametrize("link", ["out", "out/below"])
def test_root_follows_no_link_of_another_user(job, link):
    elsewhere = job.directory / "elsewhere"
    elsewhere.mkdir()
    path = job.directory / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(elsewhere)
    os.lchown(path, NOBODY, NOBODY)
    job.script('mkdir "$DW_JOB_STRIPED/below"; echo x > "$DW_JOB_STRIPED/below/passwd"', DW, OUT)
    done = job.run()
    assert done.returncode == 123 and "which root does not follow" in done.stderr, done.stderr
    assert list(elsewhere.iterdir()) == []
    os.lchown(path, 0, 0)
    assert job.command("clean").returncode == 0
    assert list(elsewhere.rglob("passwd"))


def test_control_characters_of_names_are_escaped(job):
    job.script(r"""mkfifo "$DW_JOB_STRIPED"/$'a\e[2J\nforebay: all is well'""", DW, OUT)
    done = job.run()
    assert done.returncode == 123 and "\x1b" not in done.stderr, done.stderr
    assert r"a\u{1b}[2J\nforebay: all is well" in done.stderr
    assert "forebay: all is well" not in done.stderr.splitlines()


def test_directory_whose_close_fails_is_no_panic(job):
    (job.directory / "in" / "deep").mkdir(parents=True)
    (job.directory / "in" / "deep" / "a").write_text("x")
    for first in range(1, 200, 13):
        command = [
            *strace(),
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=close",
            "-e",
            f"inject=close:error=EIO:when={first}+7",
        ]
        words = [job.forebay, "stage", "in", "in", "copy"]
        done = subprocess.run(
            [*command, *words], cwd=job.directory, env=job.environment(), capture_output=True, text=True, timeout=120
        )
        assert "panicked" not in done.stderr and done.returncode != 101, (first, done.stderr)


def test_staging_that_never_began_is_forgotten_after_a_week(job):
    (job.directory / "in").mkdir()
    begun = job.command("stage", "in", "--background", "in", "copy")
    assert job.command("stage", "wait", begun.stdout.strip()).returncode == 0
    (journal,) = job.state.rglob("*.journal")
    with sqlite3.connect(journal) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'order'")
    connection.close()
    # Its process closes the journal last.
    wait_until(lambda: not journal.with_name(f"{journal.name}-wal").exists())
    week_ago = time.time() - 8 * 86400
    os.utime(journal, (week_ago, week_ago))
    assert job.command("stage", "in", "--background", "in", "copy").returncode == 0
    wait_until(lambda: not journal.exists())
