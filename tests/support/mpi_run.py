"""Real jobs on the emulated file system, each with the profile of its run."""

import json
import os
import pathlib
import subprocess

from forebay.profiles import sources
from support.mpi import launching

PROJECT = pathlib.Path(__file__).resolve().parents[2]
MODEL = PROJECT / "machines" / "lustre-small.toml"
TARGETS = 8


class MpiRun:
    """Runs job scripts, each in a directory of its own."""

    def __init__(self, build, scratch):
        self.build = build
        self.scratch = scratch

    def kernel(self, name):
        return self.build / "kernels" / name

    def script(self, name, *lines):
        """NAME.sh in a directory of that name."""
        directory = self.scratch / name
        directory.mkdir(exist_ok=True)
        path = directory / f"{name}.sh"
        path.write_text("\n".join(["#!/bin/bash", "#SBATCH --ntasks=4", *map(str, lines), ""]))
        return path

    def profile(self, name, *lines, hints=""):
        """The profile of a run of the lines, with these hints if any."""
        path = self.script(name, *lines)
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("OMPI_MCA_io", "LD_PRELOAD"))
        }
        environment |= launching() | {"FOREBAY_STATE": str(self.scratch / "state"), "MPICH_MPIIO_HINTS": hints}
        done = subprocess.run(
            [self.build / "bin" / "forebay", "run", "--json", "--pfs-model", MODEL, path.name],
            cwd=path.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return sources.open_path(pathlib.Path(json.loads(done.stdout)["profile"]))
