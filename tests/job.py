"""A job in a directory of its own, run by the real `forebay`."""

import os
import pathlib
import signal
import subprocess
import time

DW = "#DW jobdw type=scratch access_mode=striped capacity=64MiB"


class Job:
    """A submit directory, a store beside it, and the command line in front of them."""

    def __init__(self, forebay: pathlib.Path, scratch: pathlib.Path):
        self.forebay = forebay
        self.directory = scratch / "submit dir"
        self.store = scratch / "store"
        self.temporary = scratch / "tmp"
        for directory in (self.directory, self.store, self.temporary):
            directory.mkdir()

    def script(self, body: str, *directives: str) -> None:
        """Writes job.sh: directives in the header, then the body."""
        lines = ["#!/bin/bash", "#SBATCH --ntasks=2", *directives, body, ""]
        (self.directory / "job.sh").write_text("\n".join(lines))

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "FOREBAY", "DW_"))}
        return kept | {"TMPDIR": str(self.temporary), "USER": "ada"} | more

    def start(self, *options: str, **environment: str) -> subprocess.Popen:
        command = [self.forebay, "run", "--store", self.store, *options, "job.sh"]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.directory, env=self.environment(**environment), stdout=pipe, stderr=pipe, text=True
        )

    def run(self, *options: str, **environment: str) -> subprocess.CompletedProcess:
        process = self.start(*options, **environment)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def stop_when(self, process: subprocess.Popen, reached, number: int) -> tuple[int, str]:
        """Sends a signal once `reached()` holds; returns exit status and standard error."""
        deadline = time.monotonic() + 60
        try:
            while not reached():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline, "the moment to interrupt never came"
                time.sleep(0.005)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
        if number == KILL:  # what the killed process could not take away itself
            for state in pathlib.Path("/dev/shm").glob(f"forebay-pfs-{process.pid}-*"):
                state.unlink()
        return process.returncode, err

    def allocations(self) -> list[pathlib.Path]:
        return sorted(self.store.iterdir())

    def leaves_nothing(self) -> None:
        assert self.allocations() == []
        assert list(self.temporary.iterdir()) == []


INTERRUPT = signal.SIGINT
KILL = signal.SIGKILL
