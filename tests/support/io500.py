"""Runs of `forebay bench io500` on a directory of their own."""

import os
import pathlib
import signal
import subprocess

from support.isolation import WITHOUT_CONFIGURATION, WITHOUT_DEVICES
from support.mpi import launching
from support.waiting import wait_until

#: A whole run in seconds: limits, not the stonewall, end its phases.
SHORT = ("--stonewall", "1", "--data", "48MiB", "--ranks", "2")
#: Phases that last long enough to be interrupted.
LONG = ("--stonewall", "60", "--data", "4GiB", "--ranks", "2")


class Bench:
    """A directory for the data, and a place for the results."""

    def __init__(self, forebay: pathlib.Path, scratch: pathlib.Path):
        self.forebay, self.scratch = forebay, scratch
        self.data, self.results = scratch / "data", scratch / "results"
        self.data.mkdir()
        self.path = os.environ["PATH"]

    def start(self, *words: object, directory: object = None, **options: object) -> subprocess.Popen:
        """`forebay bench io500 WORDS DIR`, with the results in self.results."""
        command = [self.forebay, "bench", "io500", "--results", self.results, *words]
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "FOREBAY", "OMPI_MCA_io"))
        }
        return subprocess.Popen(
            [str(word) for word in [*command, self.data if directory is None else directory]],
            cwd=self.scratch,
            env=kept | WITHOUT_CONFIGURATION | WITHOUT_DEVICES | launching() | {"PATH": self.path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *words: object, **options: object) -> subprocess.CompletedProcess:
        """The same to its end."""
        process = self.start(*words, **options)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def reaches(self, process: subprocess.Popen, phase: str) -> None:
        """Waits until the phase has begun and has made files."""
        for line in process.stderr:
            if line == f"forebay: {phase} ...\n":
                break
        else:
            raise AssertionError(f"{phase} did not begin; exit code {process.wait()}")
        folder = phase.rpartition("-")[0]
        # os.walk minds no directory that goes meanwhile.
        made = lambda: any(names for top in self.data.glob(f"*/{folder}") for _, _, names in os.walk(top))  # noqa: E731
        wait_until(made, what="files", process=process)

    def processes(self) -> list[str]:
        """Command lines of processes that name the directory of the data."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if str(self.data).encode() in words:
                found.append(words.decode(errors="replace"))
        return found

    def launcher(self, before: str) -> pathlib.Path:
        """A launcher that runs these lines of shell first. $PHASE is the phase, $RUN the directory of the run."""
        path = self.scratch / "launcher"
        path.write_text(
            "#!/bin/bash\n"
            'for PHASE; do :; done\nset -- "$@"\n'
            f'RUN=$(echo {self.data}/forebay-io500-*)\n{before}\nexec mpiexec "$@"\n'
        )
        path.chmod(0o755)
        return path


def interrupt(process: subprocess.Popen, number: signal.Signals) -> tuple[int, str, str]:
    """Sends the signal; exit status and both outputs."""
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
