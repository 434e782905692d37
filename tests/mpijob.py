"""Programs under libforebay_mpi.so, with one of the two MPIs of Debian."""

import json
import os
import pathlib
import subprocess

PROJECT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = PROJECT / "tests" / "mpi" / "programs"
RUN_SECONDS_MAX = 120


class Mpi:
    """One MPI: its compilers, its mpiexec, and the library built for it."""

    def __init__(self, family: str, build: pathlib.Path, scratch: pathlib.Path):
        self.family = family
        self.library = build / "lib" / "forebay" / family / "libforebay_mpi.so"
        assert self.library.exists(), f"{self.library} is missing: make -C mpi BUILD={build}"
        self.scratch = scratch

    def compiled(self, name: str, *sources: object) -> pathlib.Path:
        """A C or Fortran program, compiled once per test session."""
        program = self.scratch / f"{name}.{self.family}"
        if not program.exists():
            fortran = any(str(source).endswith(".F90") for source in sources)
            compiler = f"{'mpif90' if fortran else 'mpicc'}.{self.family}"
            words = [compiler, "-O1", "-pthread", *map(str, sources), "-o", str(program)]
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
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MPICH_", "FOREBAY_", "OMPI_MCA_io"))}
        kept |= {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            # mpiexec would wait a second for ranks that end together anyway
            "OMPI_MCA_odls_base_sigkill_timeout": "0",
        }
        return subprocess.Popen(
            [f"mpiexec.{self.family}", "-n", str(ranks), *(variable[self.family] if preload else []), *map(str, command)],
            env=kept | {name: str(value) for name, value in environment.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def run(self, ranks: int, *command: object, **options: object) -> subprocess.CompletedProcess:
        """The same, to its end."""
        process = self.start(ranks, *command, **options)
        try:
            out, err = process.communicate(timeout=RUN_SECONDS_MAX)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def report(self, ranks: int, *command: object, **environment: object):
        """The JSON of a run that must have succeeded, and the run; `environment` as for run()."""
        path = self.scratch / f"report.{self.family}.json"
        path.unlink(missing_ok=True)
        run = self.run(ranks, *command, FOREBAY_MPI_STATS=path, **environment)
        assert run.returncode == 0, run.stderr
        return json.loads(path.read_text()), run


def only_file(report: dict) -> dict:
    assert len(report["files"]) == 1, [file["path"] for file in report["files"]]
    return report["files"][0]


def said(run) -> list[str]:
    """What the library said, without hints."""
    return [line for line in run.stderr.splitlines() if line.startswith("forebay: ")]
