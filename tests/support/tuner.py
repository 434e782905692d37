"""A job that is tuned by the real `forebay tune`, on a file system that is emulated."""

import json
import pathlib

from forebay.tune.model import Run
from forebay.tune.study import Study

from support.mpi import LAUNCHING, PROJECT
from support.waiting import wait_until

MACHINE = str(PROJECT / "machines" / "lustre-small.toml")
EMULATED = ("--pfs-model", MACHINE)
#: Small writes one by one, each of which the emulated file system lets wait: any collective buffering is faster by far.
WITHOUT_BUFFERING = (
    "export MPICH_MPIIO_HINTS='*:romio_cb_write=disable:romio_ds_write=disable'"
)


class TunedJob:
    """job.sh beside what `forebay tune` makes of it. `job` is a support.job.Job."""

    def __init__(self, job, build: pathlib.Path):
        self.job = job
        self.kernels = build / "kernels"
        self.directory = job.directory
        self.study_directory = job.directory / "job.tune"
        self.tuned = job.directory / "job.tuned.sh"

    def script(self, *lines: str, directives: tuple[str, ...] = ()) -> None:
        """A job of 4 ranks; its name and mode are a user's."""
        self.job.script("\n".join(lines), *directives)
        (self.directory / "job.sh").chmod(0o750)

    def btio(
        self,
        *flags: str,
        points: int = 16,
        dumps: int = 2,
        before: str = "",
        after: str = "",
        out: str = "$PWD",
        wrapper: str = "",
    ) -> None:
        """BTIO full, without computation, as a job script."""
        deck = f'{{ echo w; echo 0; echo {dumps}; echo {points} {points} {points}; echo "{out}/out"; }} > deck.data'
        launch = f"{wrapper} mpiexec.openmpi --oversubscribe -n 4 '{self.kernels}/btio' --sweeps 0 {' '.join(flags)} deck.data"
        directives = (
            ("#DW jobdw type=scratch access_mode=striped capacity=64MiB",)
            if "DW_JOB" in out
            else ()
        )
        self.script(
            before, f'mkdir -p "{out}/out"', deck, launch, after, directives=directives
        )

    def start(self, *options: str, **environment: str):
        """Starts the tuner."""
        return self.job.forebay_starts(
            "tune", *options, "job.sh", **LAUNCHING, **environment
        )

    def tune(self, *options: str, **environment: str):
        """The same, to its end."""
        process = self.start(*options, **environment)
        out, err = process.communicate(timeout=240)
        return process.returncode, out, err

    def study(self) -> Study:
        return Study.open(self.study_directory)

    def runs(self) -> list[Run]:
        """Those in the study; none, as long as there is no study."""
        file = self.study_directory / "study.jsonl"
        return self.study().runs if file.exists() and b"\n" in file.read_bytes() else []

    def system_writes(self, record: pathlib.Path) -> int:
        """Of a record: system calls that wrote, on files that were opened through MPI-IO."""
        steps = [json.loads(path.read_text()) for path in record.glob("step-*.json")]
        files = [
            file for step in steps for file in step["files"] if file["layer"] == "mpiio"
        ]
        return sum(file["write"]["system_calls"] for file in files)

    def leaves_no_process(self) -> None:
        """Neither keepers nor kernels of this job are left, soon."""
        wait_until(lambda: not self.job.keepers() + self._of_this_job(), 60, "the end of the job's processes")

    def _of_this_job(self) -> list[str]:
        mark = f"TMPDIR={self.job.temporary}".encode()
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "comm").read_text().strip())
            except OSError:  # it has ended
                continue
        return found
