"""`sbatch` of a #DW script whose body is `forebay run`: no plugin, no root."""

import pathlib
import shutil

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"


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
