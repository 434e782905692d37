"""Where a benchmark works: the build, and jobs in scratch folders that are removed at the end."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator

from support.job import Job


class Place:
    """The build under test and a seed for all that is drawn."""

    def __init__(self, build: pathlib.Path, seed: int):
        self.build = build
        self.forebay = build / "bin" / "forebay"
        self.seed = seed

    @contextlib.contextmanager
    def job(self) -> Iterator[Job]:
        """A job whose folders lie beside the build, on the real disk; its store is the default, memory."""
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=self.build))
        try:
            job = Job(self.forebay, scratch)
            job.in_memory()
            yield job
        finally:
            shutil.rmtree(scratch)

    @contextlib.contextmanager
    def in_shared_memory(self) -> Iterator[pathlib.Path]:
        """A directory of a plain tmpfs."""
        with tempfile.TemporaryDirectory(prefix="forebay-bench-", dir="/dev/shm") as directory:
            yield pathlib.Path(directory)


def seconds(job: Job, *words) -> float:
    """How long a command takes, from its start to its end."""
    environment = job.environment()
    began = time.perf_counter()
    done = subprocess.run(
        words, cwd=job.directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    taken = time.perf_counter() - began
    succeeded(done)
    return taken


def succeeded(done: subprocess.CompletedProcess) -> subprocess.CompletedProcess:
    if done.returncode != 0:
        raise SystemExit(f"error: {done.args} ended with {done.returncode}: {done.stderr}")
    return done


def last_object(text: str) -> dict:
    """The JSON object on the last line."""
    return json.loads(text.strip().splitlines()[-1])


def forget(directory: pathlib.Path) -> None:
    """What a directory holds is read from the device next time, not from memory."""
    os.sync()
    for path in directory.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
