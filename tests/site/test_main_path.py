"""The life of a job with `#DW` lines under the unpatched plugin: staged in, run, staged out, freed."""

import re

import pytest

from support.site_cluster import DW, chown
from support.site_exchange import exchange_over_four_nodes

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
    assert users.wait(job) == "COMPLETED", users.stderr_text() + users.log()
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


def test_mpi_program_on_four_nodes_shares_the_directory(slurm_site, users, build):
    exchange_over_four_nodes(users, build, DW.replace("16MiB", "32MiB"), OUT)


def test_script_of_rabbit_is_carried_out(slurm_site, users):
    make_input(users)
    nnf = "#DW jobdw type=lustre capacity=16MiB name=my-data"
    copies = [
        "#DW copy_in source=%d/input destination=$DW_JOB_my_data/",
        "#DW copy_out source=$DW_JOB_my_data/input/deep destination=%d/results",
    ]
    users.script("srun -N2 -n2 test -e $DW_JOB_my_data/input/deep/file1", nnf, *copies)
    job = users.submit("-N2")
    assert users.wait(job) == "COMPLETED", users.stderr_text() + users.log()
    users.wait_until_freed(job)
    assert sorted(path.name for path in (users.results / "deep").glob("file*"))[:2] == ["file0", "file1"]
    for line in ("create_persistent type=lustre name=abc capacity=1GiB", "destroy_persistent name=abc"):
        users.script("true", f"#DW {line}")
        assert users.run("sbatch", "job.sh", check=False).returncode != 0, line


def test_file_of_directives_gives_an_interactive_job_a_buffer(slurm_site, users):
    make_input(users)
    (users.directory / "buffer.txt").write_text("\n".join([DW, IN, OUT, ""]))
    copy = "mkdir $DW_JOB_STRIPED/out && cp -a $DW_JOB_STRIPED/in $DW_JOB_STRIPED/out/copy"
    done = users.run("salloc", "--bbf=buffer.txt", "-N2", "srun", "-N1", "-n1", "sh", "-c", copy)
    (job,) = re.findall(r"Granted job allocation (\d+)", done.stderr)
    users.wait_until_freed(job)
    assert (users.results / "copy" / "deep" / "file7").read_bytes() == bytes([7]) * 1000


@pytest.mark.parametrize("program", ["sbatch", "srun", "salloc"])
def test_option_bb_gives_a_buffer(slurm_site, users, program):
    users.script("echo $DW_JOB_STRIPED > $DW_JOB_STRIPED/a && cp $DW_JOB_STRIPED/a seen")
    words = {"sbatch": ["--wait", "job.sh"], "srun": ["./job.sh"], "salloc": ["srun", "./job.sh"]}[program]
    users.run(program, "--bb=capacity=16MiB access=striped type=scratch", "-N1", "-n1", *words)
    assert (users.directory / "seen").read_text().startswith("/")
    slurm_site.wait(lambda: not slurm_site.status()["allocations"], users.log)
