"""Tuned jobs: real ones on an emulated file system, and made-up ones whose runs take no time."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
from click.testing import CliRunner

from forebay.cli import main
from forebay.report import tuning
from forebay.tune.runs import cpu_contention
from forebay.tune.model import Run
from forebay.tune.study import Study

from support.isolation import WITHOUT_CONFIGURATION
from support.mpi import PROJECT, launching
from support.synthetic_machine import FILE, RANKS
from support.waiting import wait_until

MACHINE = str(PROJECT / "machines" / "lustre-small.toml")
EMULATED = ("--pfs-model", MACHINE)
DW = "#DW jobdw type=scratch access_mode=striped capacity=64MiB"
#: Small writes one by one, each of which the emulated file system lets wait: any collective buffering is faster by far.
WITHOUT_BUFFERING = "export MPICH_MPIIO_HINTS='*:romio_cb_write=disable:romio_ds_write=disable'"
#: Not emulated, so that each trial sets hints, which these jobs look for.
HINTED = 'case "${MPICH_MPIIO_HINTS:-}" in *out*)'
STUDY = '"$(dirname "$PWD")/study.jsonl"'


def hanging_after(phase: str, hangs: str) -> str:
    """A job's line: each run that begins once the study has one of this phase hangs."""
    return f'grep -qs \'"phase":"{phase}"\' {STUDY} && {{ {hangs}; }}'


class TunedJob:
    """job.sh next to what `forebay tune` makes of it."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.study_directory = directory / "job.tune"
        self.tuned = directory / "job.tuned.sh"

    def study(self) -> Study:
        return Study.open(self.study_directory)

    def runs(self) -> list[Run]:
        """Those in the study; none, as long as there is no study."""
        file = self.study_directory / "study.jsonl"
        return self.study().runs if file.exists() and b"\n" in file.read_bytes() else []

    def phases(self) -> list[str]:
        return [run.phase for run in self.runs()]


class LiveJob(TunedJob):
    """BTIO under a real MPI, tuned on an emulated file system. `job` is a support.job.Job."""

    def __init__(self, job, build: pathlib.Path):
        super().__init__(job.directory)
        self.job, self.kernel = job, build / "kernels" / "btio"
        # mpiexec leaves its directory when it is killed, which is not for Forebay to remove.
        self.environment = launching() | {
            "FOREBAY_PROGRAM": str(build / "bin" / "forebay"),
            "FOREBAY_LIBRARY": str(build / "lib" / "forebay"),
            "PYTHONPATH": str(PROJECT / "tests"),
        }

    def btio(self, before: str, out: str = "$PWD", directive: str = "") -> None:
        """BTIO full on 4 ranks, without computation, as a job script; its mode is a user's."""
        deck = f'{{ echo w; echo 0; echo 1; echo 16 16 16; echo "{out}/out"; }} > deck.data'
        launch = f"mpiexec.openmpi --oversubscribe -n 4 '{self.kernel}' --sweeps 0 --verify deck.data"
        self.job.script("\n".join([WITHOUT_BUFFERING, before, f'mkdir -p "{out}/out"', deck, launch]), directive)
        (self.directory / "job.sh").chmod(0o750)

    def start(self, *options: str) -> subprocess.Popen:
        return start(*EMULATED, *options, cwd=self.directory, env=self.job.environment(**self.environment))

    def system_writes(self, record: pathlib.Path) -> int:
        """Of a record: system calls that wrote, on files that were opened through MPI-IO."""
        steps = [json.loads(path.read_text()) for path in record.glob("step-*.json")]
        return sum(
            file["write"]["system_calls"] for step in steps for file in step["files"] if file["layer"] == "mpiio"
        )

    def leaves_no_process(self) -> None:
        """Neither keepers nor kernels of this job are left, soon."""
        wait_until(
            lambda: not self.job.keepers() + processes_of(self.job.temporary), 180, "the end of the job's processes"
        )


class MadeUpJob(TunedJob):
    """A job of one made-up program, `app`, whose runs a fake series answers (fake_series.py)."""

    def __init__(self, directory: pathlib.Path, build: pathlib.Path, patch: pytest.MonkeyPatch):
        super().__init__(directory / "submit")
        self.temporary = directory / "tmp"
        self.patch = patch
        programs, library = directory / "bin", directory / "lib" / "openmpi"
        for made in (self.directory, self.temporary, programs, library):
            made.mkdir(parents=True)
        fake = pathlib.Path(__file__).parent / "fake_programs.sh"
        for name in ("forebay", "mpiexec", "mpiexec.openmpi", "app", "lfs"):
            (programs / name).symlink_to(fake)
        (library / "forebay-replay").symlink_to(fake)
        (library / "libforebay_mpi.so").symlink_to(build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so")
        for name in list(os.environ):
            if name.startswith(("SLURM_", "PBS_", "LS_SUBCWD", "FOREBAY_", "MPICH_", "FAKE_")):
                patch.delenv(name)
        self.set(**WITHOUT_CONFIGURATION)
        self.set(
            FOREBAY_PROGRAM=programs / "forebay",
            REAL_FOREBAY=build / "bin" / "forebay",
            FOREBAY_LIBRARY=library.parent,
            FOREBAY_STATE=directory / "state",
            FAKE_PYTHON=sys.executable,
            PYTHONPATH=PROJECT / "tests",
            TMPDIR=self.temporary,
            PATH=f"{programs}:{os.environ['PATH']}",
        )
        patch.setattr(tempfile, "tempdir", str(self.temporary))
        patch.chdir(self.directory)
        #: What the load monitor reads in the runs to come: (share of others, share that was busy).
        self.load: list[tuple[float, float]] = []
        without_noise(patch, self.load)

    def set(self, **variables: object) -> None:
        """Variables of the tuner's environment."""
        for name, value in variables.items():
            self.patch.setenv(name, str(value))

    def app(self, *flags: str, before: str = "", after: str = "", out: str = "", directive: str = "") -> None:
        """A job script that launches it."""
        self.script(before, f'mpiexec -n {RANKS} app {" ".join(flags)} "{out}{FILE}"', after, directive=directive)

    def script(self, *lines: str, directive: str = "") -> None:
        text = "\n".join(["#!/bin/bash", f"#SBATCH --ntasks={RANKS}", directive, *lines, ""])
        (self.directory / "job.sh").write_text(text)

    def tune(self, *options: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error of a tuner in this process."""
        done = CliRunner().invoke(main, ["tune", *options, "job.sh"])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    def tunes(self, *options: str) -> str:
        """What a tuner that succeeds prints on both streams, as one line."""
        status, out, err = self.tune(*options)
        assert status == 0, (out, err)
        return " ".join((out + err).split())

    def refused(self, *options: str, runs: int) -> str:
        """The error and hint of a tuner that has found `runs` runs in the study, or made them."""
        status, out, err = self.tune(*options)
        assert status == 1 and "error: " in err, (out, err)
        assert len(self.runs()) == runs
        assert not runs or self.study().ends[-1].reason == "stopped"
        assert not self.tuned.exists()
        return err

    def start(self, *options: str) -> subprocess.Popen:
        return start(*options)

    def leaves_nothing(self) -> None:
        """Neither processes nor temporary files, soon."""
        wait_until(lambda: not processes_of(self.temporary), what="the end of the job's processes")
        assert list(self.temporary.iterdir()) == []


def start(*options: str, **more) -> subprocess.Popen:
    """Starts a tuner that finds the machine idle."""
    words = [sys.executable, "-m", "support.tuner", "tune", *options, "job.sh"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def without_noise(patch: pytest.MonkeyPatch, load: list[tuple[float, float]]) -> None:
    """The load monitor reads these, one after the other, and then an idle machine; no page is drawn."""
    patch.setattr(cpu_contention.CpuShare, "read", lambda _: load.pop(0) if load else (0.0, 0.0))
    patch.setattr(tuning, "write_page", lambda directory: directory / "report.html")


def processes_of(temporary: pathlib.Path) -> list[str]:
    """Names of the processes that have this directory for temporary files, but for our own."""
    mark, found = f"TMPDIR={temporary}".encode(), []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0") and process.name != str(os.getpid()):
                found.append((process / "comm").read_text().strip())
        except OSError:  # it has ended
            continue
    return found


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as idle:
        without_noise(idle, [])
        main()
