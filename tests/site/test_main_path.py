"""The life of a job with `#DW` lines under the unpatched plugin: staged in, run, staged out, freed."""

from support.site_cluster import DW, chown

IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/in"
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"


def make_input(batch, files=20):
    source = batch.directory / "input"
    (source / "deep" / "er").mkdir(parents=True)
    for number in range(files):
        (source / "deep" / f"file{number}").write_bytes(bytes([number]) * 1000)
    (source / "link").symlink_to("deep/file1")
    chown(source, batch.user)
    return source


def test_tree_is_staged_in_run_on_four_nodes_and_staged_out(slurm_site, users):
    source = make_input(users)
    body = """set -e
test "$DW_JOB_STRIPED" != "${DW_JOB_STRIPED%/}"
mkdir $DW_JOB_STRIPED/out
srun -N4 -n4 bash -c 'cp -a $DW_JOB_STRIPED/in $DW_JOB_STRIPED/out/$(hostname)'
"""
    users.script(body, DW, IN, OUT)
    job = users.submit("-N4")
    assert users.wait(job) == "COMPLETED", users.complained() + users.log()
    assert users.arrived() == ["n1", "n2", "n3", "n4"]
    for node in users.arrived():
        copy = users.results / node
        assert (copy / "link").readlink().name == "file1"
        for number in range(20):
            path = copy / "deep" / f"file{number}"
            assert path.read_bytes() == (source / "deep" / path.name).read_bytes()
            assert path.stat().st_uid == users.user
    users.wait_until_freed(job)
    assert slurm_site.directories() == []
