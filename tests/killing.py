"""Killing `forebay` at a call of its own."""

import subprocess

# What was killed before it was recorded is taken for abandoned after two seconds.
UNRECORDED_S = 2.2


def killed_at(job, call: str, number: int, *words) -> int | None:
    """Runs forebay until its main thread makes that call for the n-th time; then its process, now killed."""
    inject = f"inject={call}:signal=KILL:when={number}"
    traced = [
        "strace",
        "-D",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        f"trace={call}",
        "-e",
        inject,
        job.forebay,
        *words,
    ]
    process = subprocess.Popen(
        traced, cwd=job.directory, env=job.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return process.pid if process.wait(timeout=60) != 0 else None
