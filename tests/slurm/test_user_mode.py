"""`sbatch` of a #DW script whose body is `forebay run`: no plugin, no root."""

import pathlib
import shutil
import subprocess

from slurm.batch import DW, STAGE_OUT

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"


def submitted(batch, example, *options):
    shutil.copy(EXAMPLES / example, batch.directory)
    job = batch.submit(*options, name=example)
    assert batch.wait(job) == "COMPLETED", batch.complained()
    return batch.complained()


def test_a_script_that_runs_itself_under_forebay(batch):
    complained = submitted(batch, "one-node.sh", "--nodelist=n3")
    assert batch.arrived() == ["host"], complained
    assert (batch.results / "host").read_text() == "n3\n"
    assert "allocated 64.00 MiB in /mnt/nvme" in complained
    assert batch.left() == [] and batch.status("n3") == []


def test_on_several_nodes_each_has_a_store_of_its_own(batch):
    complained = submitted(batch, "several-nodes.sh")
    assert batch.arrived() == ["rank0", "rank1"], complained
    hosts = {(batch.results / name).read_text().strip() for name in batch.arrived()}
    assert len(hosts) == 2
    assert batch.left() == []


MPI_PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
    int rank, sum;
    char name[4096];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "%srank%d", words[1], rank);
    FILE *file = fopen(name, "w");
    fprintf(file, "%d", sum);
    fclose(file);
    return MPI_Finalize();
}
"""
# Hosts made of namespaces look like one machine to UCX, which would try its shared memory.
BETWEEN_HOSTS = "UCX_TLS=tcp,self"


def test_an_mpi_program_with_a_rank_on_each_node_runs_in_the_stores_of_both(users):
    (users.directory / "sum.c").write_text(MPI_PROGRAM)
    subprocess.run(["mpicc.mpich", "-o", users.directory / "sum", users.directory / "sum.c"], check=True)
    begin = f'[ -n "${{DW_JOB_STRIPED-}}" ] || {BETWEEN_HOSTS} exec srun --mpi=pmi2 forebay run "$0"'
    users.script(f"{begin}\nmkdir ${{DW_JOB_STRIPED}}out; ./sum ${{DW_JOB_STRIPED}}out/", DW, STAGE_OUT)
    job = users.submit("--nodes=2", "--ntasks-per-node=1")
    assert users.wait(job) == "COMPLETED", users.complained()
    assert [(users.results / name).read_text() for name in users.arrived()] == ["1", "1"]
    assert users.left() == []
