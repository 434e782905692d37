# SPDX-License-Identifier: Apache-2.0

import os
from pathlib import Path

from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack_repo.builtin.build_systems.python import PythonPipBuilder

from spack.package import *


class Forebay(MakefilePackage):
    """Burst buffer and I/O tuner for parallel jobs. It obeys the #DW lines of job scripts on any
    Linux node, records the I/O of MPI programs, and finds faster MPI-IO settings."""

    # The clone that holds this file: packaging/spack/spack_repo/forebay/packages/forebay.
    git = Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("python", default=True, description="Install the Python package")
    variant(
        "report",
        default=True,
        when="+python",
        description="Enable forebay report, why and profile export",
    )
    variant("plan", default=True, when="+report", description="Enable forebay plan")
    variant("tune", default=True, when="+report", description="Enable forebay tune")

    requires("platform=linux", msg="Forebay needs Linux")
    requires("target=x86_64:", msg="Forebay needs x86-64")

    depends_on("c", type="build")  # SQLite, and the library for MPI programs
    depends_on("rust@1.88:", type="build")
    depends_on("mpi")

    extends("python", when="+python")
    with default_args(type=("build", "run"), when="+python"):
        depends_on("python@3.11:")
        depends_on("py-msgspec@0.19:")
    with default_args(type="build", when="+python"):
        depends_on("py-pip")
        depends_on("py-hatchling")
    with default_args(type=("build", "run"), when="+report"):
        depends_on("py-click@8.1:")
        depends_on("py-darshan@3.5")
        depends_on("py-jinja2@3.1:")
        depends_on("py-matplotlib@3.9:")
        depends_on("py-numpy@1.26:")
        depends_on("py-rich@13:")
    with default_args(type="run", when="+plan"):
        depends_on("py-scipy@1.13:")
        depends_on("py-simpy@4.1:")
    with default_args(type="run", when="+tune"):
        depends_on("py-optuna@4.4:")
        depends_on("py-psij-python@0.9.9:")
        depends_on("py-psutil@5.9:")
        depends_on("py-scipy@1.13:")

    sanity_check_is_file = [
        "bin/forebay",
        "lib/libdatawarp.so",
        "lib/forebay/libforebay_ceph_preload.so",
        "lib/forebay/libforebay_pfsmodel_preload.so",
    ]

    def make_settings(self):
        """Builds the library for the MPI of this spec alone, whatever other MPI is in PATH."""
        mpicc = {"MPICC_OPENMPI": "", "MPICC_MPICH": ""}
        family = "MPICC_OPENMPI" if self.spec["mpi"].name == "openmpi" else "MPICC_MPICH"
        mpicc[family] = self.spec["mpi"].mpicc
        return [f"{name}={value}" for name, value in mpicc.items()]

    @property
    def build_targets(self):
        jobs = [f"{name}={make_jobs}" for name in ("CARGO_BUILD_JOBS", "C_JOBS")]
        return ["programs", *jobs, *self.make_settings()]

    @property
    def install_targets(self):
        return ["install-programs", f"PREFIX={self.prefix}"]

    def check(self):
        """Leave out make test: it installs packages of the system. See test_job."""

    @run_after("install", when="+python")
    def install_python(self):
        with working_dir("python"):
            pip(*PythonPipBuilder.std_args(self), f"--prefix={self.prefix}", ".")

    @run_after("install", when="+report")
    def install_pages_of_python_commands(self):
        with working_dir(self.stage.source_path):
            modules = os.pathsep.join(
                [os.path.abspath("python/src"), os.environ.get("PYTHONPATH", "")]
            )
            python(
                "tools/man_pages.py", self.prefix.share.man.man1, extra_env={"PYTHONPATH": modules}
            )

    def test_job(self):
        """run a job with an allocation in memory"""
        directive = "#DW jobdw type=scratch access_mode=striped capacity=16MiB"
        with open("job.sh", "w") as script:
            script.write(
                f"#!/bin/bash\n{directive}\necho text > $DW_JOB_STRIPED/file && echo done\n"
            )
        forebay = Executable(self.prefix.bin.forebay)
        assert "done" in forebay("run", "job.sh", output=str.split, error=str.split)
