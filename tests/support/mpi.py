"""Programs under libforebay_mpi.so, with one of the two MPIs of Debian."""

import atexit
import fcntl
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from support.isolation import WITHOUT_CONFIGURATION

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = PROJECT / "tests" / "programs" / "mpi"
RUN_SECONDS_MAX = 300


#: In the environment of every run. Open MPI 4 and 5 have different names for the same wishes.
LAUNCHING = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    # mpiexec would wait a second for ranks that end together anyway
    "OMPI_MCA_odls_base_sigkill_timeout": "0",
}


@functools.cache
def session_directories() -> pathlib.Path:
    """Those of this test worker."""
    directory = tempfile.mkdtemp(prefix="forebay-mpi-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return pathlib.Path(directory)


def session_directory() -> dict[str, str]:
    """Where Open MPI keeps what a run needs: one for each run, as those that share one make and remove it for each
    other."""
    directory = tempfile.mkdtemp(dir=session_directories(), prefix="")
    return {"OMPI_MCA_orte_tmpdir_base": directory, "PRTE_MCA_prte_tmpdir_base": directory}


def launching() -> dict[str, str]:
    """LAUNCHING, for runs on this machine."""
    return LAUNCHING | session_directory()


def started(words, environment: dict[str, object]) -> subprocess.Popen:
    """The command, in this environment without what would change how an MPI does its I/O."""
    ours = ("MPICH_", "FOREBAY_", "OMPI_MCA_io", "LD_PRELOAD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.Popen(
        [str(word) for word in words],
        env=kept | WITHOUT_CONFIGURATION | launching() | {name: str(value) for name, value in environment.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )


def ended(process: subprocess.Popen) -> subprocess.CompletedProcess:
    try:
        out, err = process.communicate(timeout=RUN_SECONDS_MAX)
    except BaseException:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class Mpi:
    """One MPI: its compilers, its mpiexec, and the library built for its family.

    It is Debian's, or that of a virtual environment into which a wheel has brought it.
    """

    def __init__(self, family: str, build: pathlib.Path, wheel: pathlib.Path | None = None):
        self.family = family
        self.library = build / "lib" / "forebay" / family / "libforebay_mpi.so"
        assert self.library.exists(), f"{self.library} is missing: make -C mpi BUILD={build}"
        self.programs = build / "tests" / "mpi"
        self.wheel = wheel

    def command(self, name: str) -> str:
        """mpicc, mpif90 or mpiexec of this MPI."""
        return str(self.wheel / "bin" / name) if self.wheel else f"{name}.{self.family}"

    def compiled(self, name: str, *sources: object, compiler: str | None = None) -> pathlib.Path:
        """A C or Fortran program, compiled once for all workers; by mpicc or mpif90 unless another is given."""
        program = self.programs / f"{name}.{self.family}{'.wheel' if self.wheel else ''}"
        files = [source for source in sources if isinstance(source, pathlib.Path)]
        self.programs.mkdir(parents=True, exist_ok=True)
        with open(f"{program}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_newer(program, {file for source in files for file in source.parent.iterdir()}):
                fortran = any(source.suffix == ".F90" for source in files)
                compiler = compiler or ("mpif90" if fortran else "mpicc")
                words = [self.command(compiler), "-O1", "-pthread", *map(str, sources), "-o", str(program)]
                done = subprocess.run(words, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
        return program

    def observed(self) -> pathlib.Path:
        return self.compiled("observed", PROGRAMS / "observed.c")

    def ending(self) -> pathlib.Path:
        return self.compiled("ending", PROGRAMS / "ending.c")

    def btio(self) -> pathlib.Path:
        kernels = PROJECT / "kernels"
        sources = sorted(path for folder in ("btio", "harness") for path in (kernels / folder).glob("*.c"))
        return self.compiled("btio", "-std=c11", "-D_XOPEN_SOURCE=700", f"-I{kernels}", *sources)

    def start(self, ranks: int, *command: object, preload: object = None, **environment: object) -> subprocess.Popen:
        """mpiexec -n RANKS COMMAND with the library in front of the ranks, `preload` in its place if given."""
        preload = str(self.library if preload is None else preload)
        variable = {"openmpi": ["-x", f"LD_PRELOAD={preload}"], "mpich": ["-genv", "LD_PRELOAD", preload]}
        launch = [self.command("mpiexec"), "-n", ranks, *(variable[self.family] if preload else [])]
        return started([*launch, *command], environment)

    def run(self, ranks: int, *command: object, **options: object) -> subprocess.CompletedProcess:
        """The same, to its end."""
        return ended(self.start(ranks, *command, **options))

    def alone(self, *command: object, preload: object = None, **environment: object) -> subprocess.CompletedProcess:
        """A command without mpiexec, with the library or `preload` in front of it."""
        environment["LD_PRELOAD"] = self.library if preload is None else preload
        return ended(started(command, environment))

    def collect(self, record: object) -> subprocess.CompletedProcess:
        """Has reports made of what dead programs left in the record."""
        collector = self.library.with_name("forebay-collect")
        return subprocess.run([collector, str(record)], capture_output=True, text=True, timeout=RUN_SECONDS_MAX)

    def report(self, ranks: int, *command: object, **environment: object):
        """The JSON of a run that must have succeeded, and the run; `environment` as for run()."""
        with tempfile.TemporaryDirectory(prefix="forebay-test-") as scratch:
            path = pathlib.Path(scratch) / "report.json"
            run = self.run(ranks, *command, FOREBAY_MPI_STATS=path, **environment)
            assert run.returncode == 0, run.stderr
            return json.loads(path.read_text()), run


def is_newer(program: pathlib.Path, files) -> bool:
    return program.exists() and program.stat().st_mtime >= max(file.stat().st_mtime for file in files)


def other_library(mpi: Mpi) -> pathlib.Path:
    """The library for the family that `mpi` is not of."""
    family = "mpich" if mpi.family == "openmpi" else "openmpi"
    return mpi.library.parents[1] / family / mpi.library.name


def files_of(report: dict, layer: str) -> list[dict]:
    """Those that the program opened with MPI-IO ("mpiio"), by system calls ("posix"), as streams ("stdio")."""
    return [file for file in report["files"] if file["layer"] == layer]


def only_file(report: dict, layer: str = "mpiio") -> dict:
    files = files_of(report, layer)
    assert len(files) == 1, [file["path"] for file in files]
    return files[0]


def said(run) -> list[str]:
    """What the library said, without hints."""
    return [line for line in run.stderr.splitlines() if line.startswith("forebay: ")]
