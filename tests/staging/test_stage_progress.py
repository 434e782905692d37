"""What is shown of a staging while it runs: on a terminal, and to whoever asks for its status."""

import contextlib
import fcntl
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios
import time

from support.job import finished
from support.strace import inject_between
from support.trees import PIECE, stage_list, stage
from support.waiting import wait_until

LARGE = 64 << 20


def large(job):
    """One file, which takes more than a minute at one MiB a second."""
    (job.directory / "large").write_bytes(bytes(LARGE))
    return ("--piece", str(PIECE), "--rate", "1MiB", "large", "copy")


def one(job):
    (found,) = stage_list(job)
    return found


def test_status_of_one_large_file_has_bytes_rate_and_time_left(job):
    started = stage(job, "out", "--background", *large(job))
    id = started.stdout.strip()
    wait_until(lambda: one(job)["bytes_per_s"] is not None)
    first = one(job)
    assert (first["state"], first["placed_files"], first["placed_bytes"]) == ("running", 0, 0)
    assert 0 < first["copied_bytes"] < LARGE and first["copied_bytes"] % PIECE == 0
    left = LARGE - first["copied_bytes"]
    assert first["remaining_s"] == -(-left // first["bytes_per_s"])
    assert first["bytes_per_s"] <= LARGE, "an average since it began"
    wait_until(lambda: one(job)["copied_bytes"] > first["copied_bytes"])
    line = stage(job, "status", id).stdout.splitlines()[1]
    assert re.search(r"running +0 of 1 +[0-9.]+ [KM]iB of 64.00 MiB +[0-9.]+ [KM]iB/s +[0-9]+ s ", line), line
    assert stage(job, "cancel", id).returncode == 0
    stopped = one(job)
    assert (stopped["bytes_per_s"], stopped["remaining_s"], stopped["copied_bytes"]) == (None, None, 0)


def test_rate_is_unknown_before_the_first_piece_of_a_large_file(job):
    (job.directory / "in").mkdir()
    (job.directory / "in" / "large").write_bytes(bytes(LARGE))
    (job.directory / "in" / "small").write_bytes(b"x")
    words = ("--background", "--piece", "32MiB", "--rate", "1MiB", "in", "out")
    assert stage(job, "out", *words).returncode == 0
    wait_until(lambda: one(job)["placed_files"] == 1)
    for _ in range(15):
        time.sleep(0.1)
        assert (one(job)["copied_bytes"], one(job)["bytes_per_s"]) == (1, None)
    assert stage(job, "cancel", one(job)["id"]).returncode == 0


def test_rate_after_a_kill_counts_only_the_continued_copy(job):
    """What was copied before, and the time in which nobody copied, count for nothing."""
    process = job.forebay_starts("stage", "out", *large(job))
    wait_until(lambda: stage_list(job) and one(job)["copied_bytes"] >= 8 * PIECE)
    process.kill()
    finished(process)
    killed = one(job)
    assert killed["state"] == "interrupted" and killed["copied_bytes"] >= 8 * PIECE
    assert (killed["bytes_per_s"], killed["remaining_s"]) == (None, None)
    journal = job.state / "stagings" / f"{killed['id']}.journal"
    process = job.forebay_starts("stage", "retry", killed["id"])
    wait_until(lambda: one(job)["bytes_per_s"] is not None, process=process)
    with contextlib.closing(sqlite3.connect(journal)) as opened:
        ((began,),) = opened.execute("SELECT value FROM meta WHERE name = 'began'")
    assert int(began.split()[3]) >= killed["copied_bytes"]
    assert stage(job, "cancel", killed["id"]).returncode == 0
    assert finished(process).returncode == 123


def test_retry_starts_while_another_process_looks(job):
    """A question for the state holds the lock of the journal for a moment, which is no staging that runs."""
    process = job.forebay_starts("stage", "out", *large(job))
    wait_until(lambda: stage_list(job), process=process)
    process.kill()
    finished(process)
    lock = job.state / "stagings" / f"{one(job)['id']}.journal.lock"
    assert lock.exists()

    def retry():
        retries.append(job.forebay_starts("stage", "retry", one(job)["id"]))
        time.sleep(0.2)  # in which it finds the lock in use

    retries = []
    assert inject_between(job, "flock", 1, lock, retry, "stage", "list") == 0
    wait_until(lambda: one(job)["state"] == "running", process=retries[0])
    assert stage(job, "cancel", one(job)["id"]).returncode == 0
    assert finished(retries[0]).returncode == 123


def test_terminal_shows_a_bar_with_bytes_rate_and_time_left(job):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    words = [job.forebay, "stage", "out", *large(job)]
    process = subprocess.Popen(words, cwd=job.directory, env=job.environment(TERM="xterm"), stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        bar = rb"forebay: stage out 1 file \[[^\]]+\] +[1-9][0-9.]* [KM]iB/64.00 MiB +[1-9][0-9.]* [KM]iB/s +[0-9]+[ms]"
        while not re.search(bar, seen):
            assert len(seen) < 1 << 20, seen[-1000:]
            seen += os.read(ours, 4096)
        assert process.poll() is None
        process.terminate()
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(ours, 4096):
                seen += more
        assert process.wait(timeout=300) == 123
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"staging was stopped" in seen


def test_no_bar_without_a_terminal(job):
    (job.directory / "small").write_text("x")
    done = stage(job, "out", "small", "copy")
    assert done.returncode == 0 and "[" not in done.stderr and "\r" not in done.stderr, done.stderr
