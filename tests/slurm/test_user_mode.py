"""`sbatch` of a #DW script whose body is `forebay run`: no plugin, no root."""

import json
import pathlib
import shutil
import subprocess

from support.mpi import PROGRAMS

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"
MIB = 1 << 20


def submitted(batch, example, *options):
    shutil.copy(EXAMPLES / example, batch.directory)
    job = batch.submit(*options, name=example)
    assert batch.wait(job) == "COMPLETED", batch.complained()
    return batch.complained()


def test_script_can_run_itself_under_forebay(batch):
    complained = submitted(batch, "one-node.sh", "--nodelist=n3")
    assert batch.arrived() == ["host"], complained
    assert (batch.results / "host").read_text() == "n3\n"
    assert "allocated 64.00 MiB in /mnt/nvme" in complained
    assert batch.left() == [] and batch.status("n3") == []


def test_each_of_several_nodes_has_its_own_store(batch):
    complained = submitted(batch, "several-nodes.sh")
    assert batch.arrived() == ["rank0", "rank1"], complained
    hosts = {(batch.results / name).read_text().strip() for name in batch.arrived()}
    assert len(hosts) == 2
    assert batch.left() == []


def test_bytes_of_tasks_that_srun_starts_are_compared_with_the_kernels_count(batch):
    """The daemon of Slurm starts them, so Forebay does not get the kernel's count of them by itself."""
    program = batch.directory / "bypassing"
    subprocess.run(["gcc", "-O1", PROGRAMS / "bypassing.c", "-o", program], check=True)
    tasks = f"srun ./bypassing written a {16 * MIB} >/dev/null\n./bypassing written b {4 * MIB}\nsrun ./bypassing spliced c {8 * MIB}"
    batch.script(f"#SBATCH --nodelist=n2\nforebay profile -- sh -c '{tasks}'")
    assert batch.wait(batch.submit()) == "COMPLETED", batch.complained()
    report = batch.cluster.run(["forebay", "report", "--json", "last"], FOREBAY_STATE=str(batch.state))
    (job,) = json.loads(report.stdout)["jobs"]
    known = job["profile"]["coverage"]
    assert known["recorded_bytes"] == 28 * MIB and known["counted_bytes"] > 20 * MIB, known
    assert known["missing_bytes"] < MIB, known
