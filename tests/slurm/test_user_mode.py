"""`sbatch` of a #DW script whose body is `forebay run`: no plugin, no root."""

import json
import pathlib
import shutil
import subprocess

import pytest

from support.mpi import PROGRAMS

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"
MIB = 1 << 20


def submitted(batch, example, *options):
    shutil.copy(EXAMPLES / example, batch.directory)
    job = batch.submit(*options, name=example)
    assert batch.wait(job) == "COMPLETED", batch.stderr_text()
    return batch.stderr_text()


def test_script_can_run_itself_under_forebay(batch):
    complained = submitted(batch, "one-node.sh", "--nodelist=n3")
    assert batch.arrived() == ["host"], complained
    assert (batch.results / "host").read_text() == "n3\n"
    assert "allocated 64.00 MiB in /mnt/nvme" in complained
    assert batch.leftovers() == [] and batch.status("n3") == []


def test_each_of_several_nodes_has_its_own_store(batch):
    complained = submitted(batch, "several-nodes.sh")
    assert batch.arrived() == ["rank0", "rank1"], complained
    hosts = {(batch.results / name).read_text().strip() for name in batch.arrived()}
    assert len(hosts) == 2
    assert batch.leftovers() == []


def coverage_of(batch, script):
    """`coverage` of the report on `forebay profile` of a shell script, and why there is none."""
    batch.script(f"#SBATCH --nodelist=n2\nforebay profile -- sh -c '{script}'")
    assert batch.wait(batch.submit()) == "COMPLETED", batch.stderr_text()
    report = batch.cluster.run(["forebay", "report", "--json", "last"], FOREBAY_STATE=str(batch.state))
    (job,) = json.loads(report.stdout)["jobs"]
    return job["profile"]["coverage"], job["profile"]["coverage_unknown"]


@pytest.fixture
def bypassing(batch):
    """Two programs that move bytes, in the batch job's directory: the library is loaded into the first only."""
    for name, options in (("bypassing", []), ("static", ["-static"])):
        program = batch.directory / name
        subprocess.run(["gcc", "-O1", *options, PROGRAMS / "bypassing.c", "-o", program], check=True)


def test_bytes_of_tasks_that_srun_starts_are_compared_with_the_kernels_count(batch, bypassing):
    """The daemon of Slurm starts them, so Forebay does not get the kernel's count of them by itself."""
    tasks = ("srun ./bypassing written a %d", "./bypassing written b %d", "srun ./bypassing spliced c %d")
    sizes = [16 * MIB, 4 * MIB, 8 * MIB]
    known, why = coverage_of(batch, "\n".join(task % size for task, size in zip(tasks, sizes, strict=True)))
    assert why is None and known["recorded_bytes"] == sum(sizes) and known["counted_bytes"] > sum(sizes[:2]), known
    assert known["missing_bytes"] < MIB, known


@pytest.mark.soak
def test_bytes_that_a_task_of_srun_sends_through_a_pipe_hide_nothing(batch, bypassing):
    """The task is too small for a record, so nobody has the kernel's count of it."""
    piped = f"srun ./bypassing piped a {32 * MIB} | tail -c 1 >/dev/null"
    known, why = coverage_of(batch, f"{piped}\n./static written b {16 * MIB}\n./bypassing written c {8 * MIB}")
    assert why is None and known["recorded_bytes"] == 8 * MIB, known
    assert 16 * MIB <= known["missing_bytes"] < 17 * MIB, known


def test_task_of_srun_with_children_makes_the_share_unknown(batch, bypassing):
    """The kernel adds the bytes of the children, which have reports of their own."""
    script = f"./bypassing written a {8 * MIB}; head -c {4 * MIB} /dev/zero >b; :"
    known, why = coverage_of(
        batch, f'srun bash -c "exec 3>c; for i in {{1..40000}}; do echo {64 * "x"} >&3; done; {script}"'
    )
    assert known is None and "some programs" in why, known
