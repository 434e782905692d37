"""C programs as users write them, compiled by the plain compiler, and a job whose script may run them."""

import pathlib
import subprocess

from support.job import DW

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs" / "capi"
PATHS = 'S=$DW_JOB_STRIPED; cd "$SLURM_SUBMIT_DIR"'


def compiled(build, program, source, *how):
    """Compiles a program as a user does, strictly."""
    library = build / "lib"
    command = [*how, "-Wall", "-Wextra", "-Werror", "-I", build / "include", "-o", program, PROGRAMS / source]
    subprocess.run([*command, f"-L{library}", "-ldatawarp", f"-Wl,-rpath,{library}", "-pthread"], check=True)
    return program


class CapiJob:
    """A job whose script may say `ask`."""

    def __init__(self, job, programs):
        self.job = job
        self.programs = programs
        self.pfs = job.directory / "pfs"
        self.pfs.mkdir()
        self.with_private = False

    def script(self, body, *directives):
        access = "striped,private" if self.with_private else "striped"
        head = f"PATH={self.programs}:$PATH; {PATHS}"
        self.job.script(f"{head}\n{body}", DW.replace("striped", access), *directives)

    def output_lines(self, body, *options, directives=(), status=0):
        """Runs the body to its end; the lines that it says."""
        self.script(body, *directives)
        done = self.job.run(*options)
        assert done.returncode == status, done.stderr
        self.err = done.stderr
        return done.stdout.splitlines()
