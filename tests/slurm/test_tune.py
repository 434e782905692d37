"""`forebay tune --submit slurm`: PSI/J submits the tuner to a real Slurm, and it tunes in its job's node."""

import shutil

import pytest

from forebay.tune.study import Study

from support.mpi import LAUNCHING, PROJECT
from support.tuner import WITHOUT_BUFFERING

LIMIT = "#SBATCH --nodes=1 --ntasks=2 --time=5 --nodelist=n2"


# Python may be in a directory of root's alone.
@pytest.mark.soak
@pytest.mark.parametrize("batch", ["root"], indirect=True)
def test_tuner_and_all_its_runs_are_one_slurm_job(batch):
    # A node has a /tmp of its own; where the sources lie there, it does not see them.
    shutil.copytree(PROJECT / "python" / "src", batch.directory / "package")
    shutil.copy(PROJECT / "machines" / "lustre-small.toml", batch.directory / "model.toml")
    kernel = batch.cluster.build / "kernels" / "btio"
    batch.script(
        f"{WITHOUT_BUFFERING}\nmkdir -p out\n"
        "{ echo w; echo 0; echo 2; echo 16 16 16; echo out; } >deck.data\n"
        f"mpiexec.openmpi --oversubscribe -n 4 '{kernel}' --sweeps 0 deck.data",
        LIMIT,
    )
    words = ("forebay", "tune", "--submit", "slurm", "--budget", "4", "--pfs-model", "model.toml", "job.sh")
    # The emulation looks for a store where the job is submitted, too.
    environment = LAUNCHING | {"PYTHONPATH": str(batch.directory / "package"), "FOREBAY_STORE": "/tmp"}
    job = batch.run(*words, **environment).stdout.strip()
    batch.jobs.append(job)
    state = batch.wait(job)
    submitted = batch.directory / "job.tune" / "submitted"
    said = {path.name: path.read_text() for path in submitted.glob("tune.*")}
    assert (state, batch.show_job(job)["NodeList"]) == ("COMPLETED", "n2"), said
    study = Study.open(batch.directory / "job.tune")
    assert study.head.host == "n2" and study.ends[-1].reason in ("done", "budget"), said
    # Beside other tests a run may find the processors busy.
    assert len(study.runs) == 4 and {run.status for run in study.runs} <= {"ok", "contaminated"}, said
    assert (batch.directory / "job.tune" / "report.html").exists()
    assert batch.leftovers() == []
