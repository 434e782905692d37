"""What others delivered since a job began is not replaced by the older files of that job."""

import json
import os

import pytest

from support.job import DW, KILL
from support.strace import kill_at_syscall
from support.trees import CAREFUL, stage_list, stage

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out"
WRITE = (
    'cd "$DW_JOB_STRIPED"; mkdir out; echo $1 > out/x; ln -s $1 out/link; echo $1 > out/one-of-$1; '
    'cp out/x out/name; ln out/name out/second; touch "$SLURM_SUBMIT_DIR/wrote-$1"; [ $1 != old ] || sleep 300'
)
NEW = {"x": "new\n", "name": "new\n", "second": "new\n", "one-of-new": "new\n"}


@pytest.fixture
def out(job):
    return job.directory / "out"


@pytest.fixture
def old(job):
    """A job that wrote `old` and was killed, before the same script delivered `new`."""
    job.script(WRITE.replace("$1", "old"), DW, STAGE_OUT)
    job.stop_when(job.start(), (job.directory / "wrote-old").exists, KILL)
    (id,) = ids(job)
    job.script(WRITE.replace("$1", "new"), DW, STAGE_OUT)
    assert job.run().returncode == 0
    return id


def ids(job) -> list[str]:
    return [one["job_id"] for one in json.loads(job.command("status", "--json").stdout) if "job_id" in one]


def texts(directory) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if not path.is_symlink()}


@pytest.mark.parametrize("words", [["clean", "--kill"], ["stage", "retry"]])
def test_newer_destination_is_kept_and_named(job, out, old, words):
    if words[0] == "stage":
        job.command("clean", "--kill")
        words = [*words, old]
    done = job.command(*words)
    assert done.returncode == 123, done.stderr
    assert texts(out) == NEW | {"one-of-old": "old\n"} and os.readlink(out / "link") == "new"
    for name in ("x", "link", "name"):
        assert f"{out}/{name} is newer than what is staged, and is kept" in done.stderr
    assert f"forebay clean {old} --to DIR" in done.stderr and "--overwrite-newer" in done.stderr
    (allocation,) = job.allocations()
    assert (allocation / "striped" / "out" / "x").read_text() == "old\n"


@pytest.mark.parametrize("words", [["clean", "--kill"], ["stage", "retry"]])
def test_newer_destination_is_replaced_with_the_option(job, out, old, words):
    if words[0] == "stage":
        job.command("clean", "--kill")
        words = [*words, old]
    assert job.command(*words, "--overwrite-newer").returncode == 0
    assert texts(out)["x"] == "old\n" and os.readlink(out / "link") == "old"
    job.leaves_nothing()


def test_destination_delivered_since_with_old_times_is_kept(job, out, old):
    os.utime(out / "x", (1, 1))
    assert job.command("clean", "--kill").returncode == 123
    assert (out / "x").read_text() == "new\n"


def test_destination_older_than_the_job_is_replaced(job, out):
    job.script(WRITE.replace("$1", "new"), DW, STAGE_OUT)
    assert job.run().returncode == 0
    job.script(WRITE.replace("$1", "old"), DW, STAGE_OUT)
    job.stop_when(job.start(), (job.directory / "wrote-old").exists, KILL)
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert texts(out)["x"] == "old\n"
    job.leaves_nothing()


def test_own_earlier_copy_of_a_drained_file_is_replaced(job, out):
    job.script(
        'cd "$DW_JOB_STRIPED"; mkdir out; echo first > out/x; forebay drain wait || exit; echo second > out/x.tmp; '
        'mv out/x.tmp out/x; touch "$SLURM_SUBMIT_DIR/wrote-old"; sleep 300',
        DW,
        STAGE_OUT,
    )
    path = f"{job.forebay.parent}:{os.environ['PATH']}"
    process = job.start("--drain", "no-such-name", "--drain", "x", PATH=path)
    job.stop_when(process, (job.directory / "wrote-old").exists, KILL)
    assert (out / "x").read_text() in ("first\n", "second\n")
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert (out / "x").read_text() == "second\n"
    job.leaves_nothing()


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_clean_to_a_directory_copies_all_files_and_replaces_nothing(job, out, store):
    if store == "memory":
        job.in_memory()
    job.script(
        WRITE.replace("$1", "old").replace("mkdir out", "mkdir out; echo y > unnamed; echo p > $DW_JOB_PRIVATE/p"),
        DW.replace("striped", "striped,private"),
        STAGE_OUT,
    )
    job.stop_when(job.start(), (job.directory / "wrote-old").exists, KILL)
    (id,) = ids(job)
    rescued = job.directory / "rescued"
    (rescued / "striped").mkdir(parents=True)
    (rescued / "striped" / "unnamed").write_text("mine")
    done = job.command("clean", id, "--kill", "--to", "rescued")
    assert done.returncode == 123 and "unnamed is newer than what is staged, and is kept" in done.stderr, done.stderr
    assert (rescued / "striped" / "unnamed").read_text() == "mine"
    (rescued / "striped" / "unnamed").unlink()
    done = job.command("clean", id, "--to", "rescued")
    assert done.returncode == 0, done.stderr
    assert (rescued / "striped" / "unnamed").read_text() == "y\n" and (rescued / "private" / "p").read_text() == "p\n"
    assert texts(rescued / "striped" / "out")["x"] == "old\n" and not out.exists()
    job.leaves_nothing()


def test_clean_to_refuses_directories_that_would_lose_files(job, old):
    (allocation,) = job.allocations()
    for words, message in [
        ([old, "no-such-job", "--to", "rescued"], "--to takes the files of one job"),
        ([old, "--kill", "--to", allocation / "striped" / "r"], "is in the job's allocation"),
        ([old, "--discard", "--to", "rescued"], "cannot be used with"),
    ]:
        done = job.command("clean", *words)
        assert done.returncode != 0 and message in done.stderr, (words, done.stderr)
    assert (allocation / "striped" / "out" / "x").exists()


@pytest.mark.parametrize("background", [[], ["--background"]])
def test_retry_of_a_staging_keeps_destinations_changed_since_its_start(job, out, background):
    tree = job.directory / "in"
    tree.mkdir()
    for name in "abc":
        (tree / name).write_text(f"old {name}")
        os.utime(tree / name)
    assert kill_at_syscall(job, "rename", 2, "stage", "out", *CAREFUL, "in", "out", threads=True) is not None
    (one,) = stage_list(job)
    out.mkdir(exist_ok=True)
    for name in "abc":
        (out / name).write_text(f"new {name}")
        os.utime(out / name, (1, 1))
    done = stage(job, "retry", one["id"], *background)
    stage(job, "wait", one["id"])
    assert texts(out) == {name: f"new {name}" for name in "abc"}
    if not background:
        assert done.returncode == 123 and "is newer than what is staged, and is kept" in done.stderr
    stage(job, "retry", one["id"], "--overwrite-newer", *background)
    stage(job, "wait", one["id"])
    assert texts(out) == {name: f"old {name}" for name in "abc"}
