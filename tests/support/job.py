"""A job in a directory of its own, run by the real `forebay`."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

from support.isolation import WITHOUT_CONFIGURATION
from support.waiting import wait_until

DW = "#DW jobdw type=scratch access_mode=striped capacity=64MiB"


class Job:
    """A submit directory, a store next to it, and the command line in front of them."""

    def __init__(self, forebay: pathlib.Path, scratch: pathlib.Path):
        self.forebay = forebay
        self.directory = scratch / "submit dir"
        self.store = scratch / "store"
        self.temporary = scratch / "tmp"
        self.state = scratch / "state"
        for directory in (self.directory, self.store, self.temporary, self.state):
            directory.mkdir()
        self.where = ["--store", self.store]
        self.user = None
        self.settings: dict[str, str] = {}

    def script(self, body: str, *directives: str) -> None:
        """Writes job.sh: directives in the header, then the body."""
        lines = ["#!/bin/bash", "#SBATCH --ntasks=2", *directives, body, ""]
        (self.directory / "job.sh").write_text("\n".join(lines))

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "LSB_", "PBS_", "FLUX_", "FOREBAY", "DW_"))
        }
        return (
            kept
            | WITHOUT_CONFIGURATION
            | {"TMPDIR": str(self.temporary), "FOREBAY_STATE": str(self.state), "USER": "ada"}
            # Open MPI shares a semaphore among all files of one name on a machine. It hangs if that of another test is root's.
            | ({} if self.user is None else {"OMPI_MCA_sharedfp": "^sm"})
            | self.settings
            | more
        )

    def start(self, *options: str, **environment: str) -> subprocess.Popen:
        return self.forebay_starts("run", *self.where, *options, "job.sh", **environment)

    def forebay_starts(self, *words: str, **environment: str) -> subprocess.Popen:
        """Starts any command of forebay next to the job."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [self.forebay, *words],
            cwd=self.directory,
            env=self.environment(**environment),
            stdout=pipe,
            stderr=pipe,
            text=True,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )

    def command(self, *words: str, **environment: str) -> subprocess.CompletedProcess:
        """Any command of forebay next to the job, to its end."""
        return finished(self.forebay_starts(*words, **environment))

    def in_memory(self, *more: str) -> None:
        """From here on the job has the default store, in memory, and these options."""
        self.where = list(more)

    def as_nobody(self) -> None:
        """From here on the job is an ordinary user's, if it was root's."""
        if os.getuid() != 0:
            return
        self.user = NOBODY
        for directory in (self.directory, self.store, self.temporary, self.state):
            os.chown(directory, NOBODY, NOBODY)

    def run(self, *options: str, **environment: str) -> subprocess.CompletedProcess:
        return finished(self.start(*options, **environment))

    def stop_when(self, process: subprocess.Popen, reached, number: int) -> tuple[int, str]:
        """Sends a signal once `reached()` holds; returns exit status and standard error."""
        try:
            wait_until(reached, what="the moment to interrupt", process=process)
            process.send_signal(number)
            if number == KILL:  # what it started lives on, and holds the pipes
                process.stdout.close()
                process.stderr.close()
                return process.wait(timeout=300), ""
            _, err = process.communicate(timeout=300)
        except BaseException:
            process.kill()
            raise
        return process.returncode, err

    def records(self) -> list[pathlib.Path]:
        """The records of I/O, oldest first."""
        profiles = self.state / PROFILES
        return sorted(profiles.iterdir(), key=lambda path: int(path.name)) if profiles.exists() else []

    def record(self) -> dict:
        """What the only record says of its job."""
        (record,) = self.records()
        return json.loads((record / "job.json").read_text())

    def allocations(self) -> list[pathlib.Path]:
        return sorted(self.store.iterdir())

    def keepers(self) -> list[str]:
        """Processes that still hold a view of a job of this folder."""
        mark = f"TMPDIR={self.temporary}".encode()
        named = (pid for pid in os.listdir("/proc") if pid.isdigit() and of_process(pid, "comm") == b"forebay-keeper\n")
        return [pid for pid in named if mark in of_process(pid, "environ").split(b"\0")]

    def keeper(self) -> int:
        """The process that holds the only view; it gets its name just after the script has begun."""
        wait_until(self.keepers, 180, "a keeper")
        (found,) = self.keepers()
        return int(found)

    def leaves_nothing(self) -> None:
        assert self.keepers() == []
        assert self.allocations() == []
        assert self.leftovers() == [], self.leftovers()

    def leftovers(self) -> list[pathlib.Path]:
        """Temporary files, and what of the state is no profile."""
        return [*self.temporary.iterdir(), *(path for path in self.state.iterdir() if path.name != PROFILES)]


def of_process(pid: str, name: str) -> bytes:
    """A file of the process in /proc; empty if it has ended, or is another user's. Most tests read those of all processes,
    for which pathlib takes several times as long."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def finished(process: subprocess.Popen) -> subprocess.CompletedProcess:
    try:
        out, err = process.communicate(timeout=300)
    except BaseException:
        process.terminate()  # it ends the job
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


NOBODY = 65534
PROFILES = "profiles"
INTERRUPT = signal.SIGINT
KILL = signal.SIGKILL
