"""`forebay tune` for a job on two nodes: each trial has the layout of the namespace that it asks for."""

from support.mpi import LAUNCHING, PROJECT, Mpi
from support.nodes import nodes

from forebay.tune.study import Study

SCRIPT = """#!/bin/bash
#DW jobdw type=scratch access_mode=striped capacity=64MiB
/usr/bin/mpiexec.openmpi -n 2 {program} $DW_JOB_STRIPED/out
getfattr --absolute-names --only-values -n ceph.file.layout $DW_JOB_STRIPED/out.1
"""
#: As in a job of LSF on both.
OF_LSF = {"LSB_JOBID": 77, "LSB_MCPU_HOSTS": "n1 1 n2 1"}
POOLS = {"striped": "data", "local": "local.1"}


def test_trials_have_the_layout_that_they_ask_for(build):
    with nodes(2, build) as bed:
        program = bed.copied(Mpi("openmpi", build).compiled("own_files", PROJECT / "tests/programs/nodes/own_files.c"))
        folder = bed.shared / "tuned"
        folder.mkdir()
        (folder / "job.sh").write_text(SCRIPT.format(program=program))
        words = ["forebay", "tune", "--budget", 10, "--seed", 1, "--on", "burst-buffer", "job.sh"]
        settings = {"FOREBAY_LAUNCHER": "ssh", "FOREBAY_ENGINE": "ceph"}
        bed.run("n1", words, directory=folder, **LAUNCHING, **OF_LSF, **settings)
        study = Study.open(folder / "job.tune")
        configurations = [run.configuration for run in study.runs]
        assert {"dw_placement": "local"} in configurations and {} in configurations, configurations
        assert any("dw_stripe_bytes" in one for one in configurations), configurations
        assert {run.status for run in study.runs} <= {"ok", "contaminated"}
        for run in study.runs:
            unit = run.configuration.get("dw_stripe_bytes", 1 << 20)
            pool = POOLS[run.configuration.get("dw_placement", "striped")]
            printed = (study.run_directory(run.number) / "output.txt").read_text()
            assert printed == f"stripe_unit={unit} stripe_count=1 object_size={unit} pool={pool}", run
