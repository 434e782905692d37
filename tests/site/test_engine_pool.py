"""Pools in the nodes' own storage with an engine: the nodes of a job share one namespace, which ends with the job."""

import pytest

from support.site_cluster import TOGETHER, chown

IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/input"
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
NODES = "--nodelist=n1,n3,n4"


def prepare(batch):
    (batch.directory / "input").mkdir()
    (batch.directory / "input" / "deck").write_text("input\n")
    batch.results.mkdir()
    for path in (batch.directory / "input", batch.results):
        chown(path, batch.user)


def frees(batch, *jobs):
    batch.wait_until_freed(*jobs)
    assert batch.cluster.on_nodes("together") == []


def test_nodes_share_one_namespace_that_is_staged_in_and_out(slurm_site, users):
    slurm_site.cgroup("n4")
    prepare(users)
    body = """set -e
srun bash -c 'stat -f -c %T $DW_JOB_STRIPED; cat $DW_JOB_STRIPED/input/deck'
mkdir $DW_JOB_STRIPED/out
srun bash -c 'hostname > $DW_JOB_STRIPED/out/$(hostname)'
srun bash -c 'ls $DW_JOB_STRIPED/out | wc -l'
srun bash -c 'echo $(hostname) >> $DW_JOB_STRIPED/out/all'
touch running; until [ -e end ]; do sleep 0.1; done
"""
    users.script(body, TOGETHER, IN, OUT)
    job = users.submit("-N3", "--ntasks-per-node=1", NODES)
    users.appears("running")
    (users.directory / "end").touch()
    frees(users, job)
    assert sorted(users.said().splitlines()) == ["3"] * 3 + ["fuseblk"] * 3 + ["input"] * 3
    found = {path.name: path.read_text() for path in users.results.iterdir()}
    lines = found.pop("all").splitlines()
    assert sorted(lines) == ["n1", "n3", "n4"]
    assert found == {node: f"{node}\n" for node in ("n1", "n3", "n4")}
