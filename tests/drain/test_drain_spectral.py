"""Spectral's way: a script of Summit, unchanged."""

import json
import re

import pytest

from support.job import DW, INTERRUPT, KILL
from support.slow_model import MODEL
from support.users import anyone, started  # noqa: F401 (a fixture)

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


def test_summit_script_runs_unchanged(job):
    script(job, "echo late > $PERSIST_DIR/late")
    done = job.run("--json")
    assert done.returncode == 0, done.stderr
    waited = (job.directory / "waited").read_text().splitlines()
    assert waited[-2:] == ["Enqueued:4 Dequeued:4 Done:4", "All files moved"]
    assert (job.directory / "arrived").read_text() == "4\n"
    assert (job.pfs / "late").read_text() == "late\n"
    lines = (job.pfs / "spectral.log").read_text().splitlines()
    for state in ("ENQUEUE", "DEQUEUE", "DONE"):
        moved = [line for line in lines if line.startswith(f"Spectral Work {state} File : /mnt/bb/ada/run/out.")]
        assert len(moved) == len(set(moved)) == 4, lines
    assert "Spectral Work DONE File : /mnt/bb/ada/late" in lines
    account = json.loads(done.stdout)["drain"]
    assert account["enqueued"] == 5 and account["failures"] == []
    job.leaves_nothing()


def test_spectral_variables_can_be_set_in_the_environment(job):
    pfs = job.directory.parent / "pfs"
    job.in_memory()
    body = "#!/bin/bash\n#BSUB -alloc_flags nvme\nexport X=1\necho 1 > /mnt/bb/$USER/sub/a || { mkdir /mnt/bb/$USER/sub; echo 1 > /mnt/bb/$USER/sub/a; }\n"
    (job.directory / "job.sh").write_text(body + f"spectral_wait.py; cat {pfs}/a > seen\n")
    done = job.run(PERSIST_DIR="/mnt/bb/ada/sub", PFS_DIR=str(pfs))
    assert done.returncode == 0, done.stderr
    assert (job.directory / "seen").read_text() == "1\n"


def test_unrelated_spectral_variables_are_ignored_with_a_note(job):
    job.script('echo 1 > "$DW_JOB_STRIPED/a"; spectral_wait.py && exit 9; mpiexec -n 1 true', DW)
    done = job.run(PERSIST_DIR="/tmp", PFS_DIR="/tmp")
    assert done.returncode == 0, done.stderr
    assert "PERSIST_DIR=/tmp: it is not in the burst buffer" in done.stderr
    assert "spectral_wait.py: nothing of this job is drained" in done.stderr
    job.leaves_nothing()


def test_unwritable_spectral_target_is_reported_where_it_is_named(job):
    script(job)
    job.pfs.write_text("a file")
    done = job.run()
    assert "PFS_DIR" in done.stderr or "is no directory" in done.stderr, done.stderr
    assert "All files moved" not in (job.directory / "waited").read_text()
    assert job.pfs.read_text() == "a file"


def test_killed_spectral_job_is_drained_by_clean(job):
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
def test_spectral_without_a_destination_is_reported(job, option):
    job.script("true")
    done = job.run(*option)
    assert (done.returncode, "no burst buffer" in done.stderr) == ((125, True) if option else (0, False)), done.stderr


@pytest.mark.parametrize("around", [False, True])
def test_ordinary_user_sees_mapped_summit_paths(anyone, around):
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


# Four are copied at a time, so the others wait for stage-out.
LEFT = """#!/bin/bash
#BSUB -alloc_flags nvme
cd $PERSIST_DIR; for n in 1 2 3 4; do head -c 5M /dev/zero > in-hand-$n; done
until '{forebay}' drain status --json | grep -q '"dequeued":4'; do :; done
for n in 1 2 3; do head -c 6M /dev/zero > waits-$n; done
{more}
"""


def left_to_stage_out(job, more="", bandwidth="4 MB/s"):
    """The options of a run of this, on a slow file system."""
    job.in_memory()
    job.pfs = job.directory.parent / "pfs"
    job.pfs.mkdir()
    (job.directory / "slow.toml").write_text(MODEL.replace("20 MB/s", bandwidth))
    (job.directory / "job.sh").write_text(LEFT.format(forebay=job.forebay, more=more))
    variables = {"PERSIST_DIR": "/mnt/bb/ada", "PFS_DIR": str(job.pfs)}
    return ("--pfs-model", "slow.toml", "--pfs-root", str(job.pfs)), variables


def logged(job, state):
    lines = (job.pfs / "spectral.log").read_text().splitlines()
    return sorted(line.rsplit("/", 1)[1] for line in lines if line.startswith(f"Spectral Work {state} "))


def arrived(job):
    return sorted(path.name for path in job.pfs.glob("*-*[0-9]"))


ALL = [*(f"in-hand-{n}" for n in (1, 2, 3, 4)), *(f"waits-{n}" for n in (1, 2, 3))]


def test_files_that_stage_out_copied_are_logged_as_done(job):
    options, variables = left_to_stage_out(job)
    done = job.run(*options, **variables)
    assert done.returncode == 0, done.stderr
    assert logged(job, "ENQUEUE") == logged(job, "DONE") == arrived(job) == ALL
    assert logged(job, "DEQUEUE") != ALL
    job.leaves_nothing()


def test_files_missing_after_stopped_stage_out_are_not_logged_as_done(job):
    options, variables = left_to_stage_out(job)
    by_stage_out = lambda: [path for path in job.pfs.glob("*.part") if not re.search(r"-d\d", path.name)]  # noqa: E731
    code, err = job.stop_when(job.start(*options, **variables), by_stage_out, INTERRUPT)
    assert code != 0 and "staging was stopped" in err, err
    assert logged(job, "ENQUEUE") == ALL and logged(job, "DONE") == arrived(job) != ALL
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert arrived(job) == ALL


def test_files_missing_without_journal_are_not_logged_as_done(job):
    """What should be the journal of the stage-out is damaged when that begins."""
    damage = 'for record in "$FOREBAY_STATE"/*.json; do echo no journal > "${record%.json}.journal"; done'
    # The first four are copied until long after that.
    options, variables = left_to_stage_out(job, damage, "1 MB/s")
    done = job.run(*options, **variables)
    assert done.returncode == 123 and "is damaged" in done.stderr, done.stderr
    assert logged(job, "ENQUEUE") == ALL and logged(job, "DONE") == arrived(job) != ALL
