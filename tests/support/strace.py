"""Interrupting `forebay` at a call of its own."""

import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import time

from support.waiting import wait_until

# What was killed before it was recorded is taken for abandoned after two seconds, or so soon.
UNRECORDED_MS = 50
#: Not the numbers that each test begins with.
UNSEEDED = random.SystemRandom()
EVERY_POINT = bool(os.environ.get("EVERY_POINT"))
ABANDONED = {"FOREBAY_UNRECORDED_MS": str(UNRECORDED_MS)}


def few(*cases, kept: int = 1) -> list:
    """The first cases; `make soak` tries all."""
    return list(cases) if EVERY_POINT else list(cases[:kept])


def points(count: int) -> list[int]:
    """Of so many calls the first, the middle and the last; `make soak` goes through all of them."""
    return list(range(1, count + 1)) if EVERY_POINT else sorted({1, (count + 1) // 2, count} - {0})


def calls_made(job, call: str, *words, threads: bool = False, path=None) -> int:
    """How often forebay makes this call when nobody disturbs it: its main thread, or whichever makes most of them."""
    trace = job.directory.parent / "counted"
    process = traced(job, call, "delay_enter=0", *words, threads=threads, trace=trace, path=path)
    process.wait(timeout=300)
    made = collections.Counter(re.findall(rf"^(\d+ +|){call}\(", trace.read_text(), re.MULTILINE))
    trace.unlink()
    return max(made.values(), default=0)


def kill_at_each_syscall(job, call: str, *words, threads: bool = False, again=lambda: None):
    """Kills forebay at each point of its calls of that name, after one run to count them; `again` removes what that
    has left. Yields the number of the call after each kill."""
    count = calls_made(job, call, *words, threads=threads)
    again()
    for number in points(count):
        if kill_at_syscall(job, call, number, *words, threads=threads) is not None:
            yield number


def abandoned(job) -> None:
    """From here on what is not recorded is not waited for."""
    job.settings |= ABANDONED
    time.sleep(2 * UNRECORDED_MS / 1000)


def kill_at_syscall(job, call: str, number: int, *words, threads: bool = False, path=None) -> int | None:
    """Runs forebay until its main thread, or any, makes that call for the n-th time; then its process, now killed."""
    process = traced(job, call, f"signal=KILL:when={number}", *words, threads=threads, path=path)
    return process.pid if process.wait(timeout=300) == -signal.SIGKILL else None


def strace() -> list[str]:
    """strace on one processor together with what it starts: each system call is two switches between them, which take
    three to six times as long from one processor to another."""
    return ["taskset", "--cpu-list", str(UNSEEDED.choice(sorted(os.sched_getaffinity(0)))), "strace"]


def traced(
    job, call: str, happens: str, *words, threads: bool = False, trace: str = "/dev/null", path=None
) -> subprocess.Popen:
    """Starts forebay, to which this happens at its calls of that name (strace --inject), or only at those on a path;
    strace writes them to `trace`."""
    command = [*strace(), "-D", *(["-f"] if threads else []), "-qq", "-o", trace, "-e", f"trace={call}"]
    command += ["-e", f"inject={call}:{happens}", *(["-P", path] if path else []), job.forebay, *words]
    return subprocess.Popen(
        command, cwd=job.directory, env=job.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@contextlib.contextmanager
def pause_at_syscall(job, call: str, is_there, *words):
    """Forebay, stopped in the midst of such a call once `is_there()` holds; afterwards it goes on to its end. None
    if it ends before."""
    process = traced(job, call, "signal=STOP", *words, threads=True)
    try:
        while is_stopped(process) and not is_there():
            process.send_signal(signal.SIGCONT)
        yield process if process.poll() is None else None
        while is_stopped(process):
            process.send_signal(signal.SIGCONT)
    finally:
        process.kill()
        process.wait()


def inject_between(job, call: str, number: int, path, happens, *words) -> int | None:
    """Stops forebay at its n-th such call on a path, lets something happen, lets it go on; how it ended. None if it
    makes no such call."""
    with contextlib.ExitStack() as last:
        process = traced(job, call, f"signal=STOP:when={number}", *words, path=path)
        last.callback(process.kill)
        if is_stopped(process):
            happens()
            process.send_signal(signal.SIGCONT)
            return process.wait(timeout=300)
    return None


def is_stopped(process: subprocess.Popen) -> bool:
    """Waits until all of its threads are stopped, or it has ended."""
    events = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
    wait_until(lambda: process.returncode is not None or os.waitid(os.P_PID, process.pid, events))
    return process.poll() is None


def has_ended(process):
    """One that is killed lives on while what only it held is freed."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
