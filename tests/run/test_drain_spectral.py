"""Spectral's way: a script of Summit, unchanged."""

import json

import pytest

from job import DW, KILL
from views import anyone, started  # noqa: F401 (a fixture)

SUMMIT = """#!/bin/bash
#BSUB -nnodes 1
#BSUB -alloc_flags spectral
module load spectral
export PERSIST_DIR=/mnt/bb/$USER
export PFS_DIR={pfs}
jsrun -n 2 bash -c 'mkdir -p $PERSIST_DIR/run; for step in 1 2; do echo "$OMPI_COMM_WORLD_RANK$PMI_RANK" > "$PERSIST_DIR/run/out.$$.$step"; done'
spectral_wait.py > waited
find "$PFS_DIR/run" -type f | wc -l > arrived
{more}
"""


def script(job, more=""):
    job.in_memory()
    job.pfs = job.directory.parent / "pfs"
    (job.directory / "job.sh").write_text(SUMMIT.format(pfs=job.pfs, more=more))


def test_a_script_of_summit_runs_unchanged(job):
    script(job, "echo late > $PERSIST_DIR/late")
    done = job.run("--json")
    assert done.returncode == 0, done.stderr
    waited = (job.directory / "waited").read_text().splitlines()
    assert waited[-2:] == ["Enqueued:4 Dequeued:4 Done:4", "All files moved"]
    assert (job.directory / "arrived").read_text() == "4\n"
    assert (job.pfs / "late").read_text() == "late\n"
    lines = (job.pfs / "spectral.log").read_text().splitlines()
    for state in ("ENQUEUE", "DEQUEUE", "DONE"):
        moved = [
            line for line in lines if line.startswith(f"Spectral Work {state} File : /mnt/bb/ada/run/out.")
        ]
        assert len(moved) == len(set(moved)) == 4, lines
    assert "Spectral Work DONE File : /mnt/bb/ada/late" in lines
    account = json.loads(done.stdout)["drain"]
    assert account["enqueued"] == 5 and account["failures"] == []
    job.leaves_nothing()


def test_the_variables_may_be_set_around_the_job(job):
    pfs = job.directory.parent / "pfs"
    job.in_memory()
    body = "#!/bin/bash\n#BSUB -alloc_flags nvme\nexport X=1\necho 1 > /mnt/bb/$USER/sub/a || { mkdir /mnt/bb/$USER/sub; echo 1 > /mnt/bb/$USER/sub/a; }\n"
    (job.directory / "job.sh").write_text(body + f"spectral_wait.py; cat {pfs}/a > seen\n")
    done = job.run(PERSIST_DIR="/mnt/bb/ada/sub", PFS_DIR=str(pfs))
    assert done.returncode == 0, done.stderr
    assert (job.directory / "seen").read_text() == "1\n"


def test_variables_that_mean_something_else_do_no_harm(job):
    job.script('echo 1 > "$DW_JOB_STRIPED/a"; spectral_wait.py && exit 9; mpiexec -n 1 true', DW)
    done = job.run(PERSIST_DIR="/tmp", PFS_DIR="/tmp")
    assert done.returncode == 0, done.stderr
    assert "PERSIST_DIR=/tmp: it is not in the burst buffer" in done.stderr
    assert "spectral_wait.py: nothing of this job is drained" in done.stderr
    job.leaves_nothing()


def test_a_target_that_cannot_be_written_is_said_where_it_is_named(job):
    script(job)
    job.pfs.write_text("a file")
    done = job.run()
    assert "PFS_DIR" in done.stderr or "is no directory" in done.stderr, done.stderr
    assert "All files moved" not in (job.directory / "waited").read_text()
    assert job.pfs.read_text() == "a file"


def test_killed_clean_brings_what_was_promised(job):
    script(job, "echo late > $PERSIST_DIR/late; touch running; sleep 600")
    process = job.start()
    started(job, process)
    job.stop_when(process, lambda: True, KILL)
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert (job.pfs / "late").read_text() == "late\n"
    assert len(list((job.pfs / "run").iterdir())) == 4
    job.leaves_nothing()


@pytest.mark.parametrize("option", [[], ["--spectral"]])
def test_spectral_without_a_place_for_it(job, option):
    job.script("true")
    done = job.run(*option)
    assert (done.returncode, "no burst buffer" in done.stderr) == ((125, True) if option else (0, False)), (
        done.stderr
    )


@pytest.mark.parametrize("around", [False, True])
def test_paths_of_summit_are_shown_to_anyone(anyone, around):
    """`PFS_DIR` exists in the job's view only, whether the script names it or whoever starts it."""
    variables = {"PERSIST_DIR": "/mnt/bb/ada", "PFS_DIR": "/gpfs/alpine/out"}
    exports = "" if around else "".join(f"export {name}={value}\n" for name, value in variables.items())
    text = f"#!/bin/bash\n#BSUB -alloc_flags spectral\n{exports}echo 1 > $PERSIST_DIR/a\nspectral_wait.py\ncat /gpfs/alpine/out/a\n"
    (anyone.directory / "job.sh").write_text(text)
    done = anyone.run("--map", f"/gpfs/alpine={anyone.pfs}", **(variables if around else {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["All files moved", "1"]
    assert (anyone.pfs / "out" / "a").read_text() == "1\n"
    anyone.leaves_nothing()
