"""Killing `forebay` at a call of its own."""

import signal
import subprocess

# What was killed before it was recorded is taken for abandoned after two seconds.
UNRECORDED_S = 2.2


def killed_at(job, call: str, number: int, *words, threads: bool = False) -> int | None:
    """Runs forebay until its main thread, or any, makes that call for the n-th time; then its process, now killed."""
    traced = ["strace", "-D", *(["-f"] if threads else []), "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
    traced += ["-e", f"inject={call}:signal=KILL:when={number}", job.forebay, *words]
    process = subprocess.Popen(
        traced, cwd=job.directory, env=job.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return process.pid if process.wait(timeout=60) == -signal.SIGKILL else None
