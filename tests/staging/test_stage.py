"""`forebay stage`: what arrives, what is said of what does not, and that a kill changes nothing of either."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import pytest

from support.job import DW
from support.strace import kill_at_syscall, kill_at_each_syscall
from support.trees import (  # noqa: F401
    CALLS,
    CAREFUL,
    PIECE,
    SEED,
    forget,
    retry_completes,
    stage_list,
    parts,
    refused,
    remove_tree,
    tree_state,
    stage,
    tree,
)
from support.users import as_user, reachable, root_only

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"


def test_tree_is_copied_unchanged_and_skipped_the_second_time(job, tree):
    done = stage(job, "out", "in", "out", "--json")
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout)
    assert (account["state"], account["files"], account["missing_files"]) == ("done", 26, 0)
    assert tree_state(job.directory / "out") == tree_state(tree)
    before = {path: path.lstat().st_ino for path in (job.directory / "out").rglob("*")}
    assert stage(job, "out", "in", "out").returncode == 0
    assert before == {path: path.lstat().st_ino for path in (job.directory / "out").rglob("*")}, (
        "what is there is not made again"
    )
    assert stage_list(job) == []


@pytest.mark.parametrize("call", CALLS)
def test_staging_killed_at_any_step_ends_in_the_same_state(job, tree, call):
    met = 0
    words = ("stage", "out", *CAREFUL, "in", "out")
    for _ in kill_at_each_syscall(job, call, *words, threads=True, again=lambda: forget(job)):
        retry_completes(job, tree)
        forget(job)
        met += 1
    assert met > 0 or call in ("link", "linkat", "symlink", "symlinkat", "mkdir"), f"{call} is never called"


def test_staging_killed_at_random_moments_ends_in_the_same_state(job, tree):
    (tree / "slow").write_bytes(random.Random(SEED).randbytes(40 * PIECE))
    draw = random.Random(SEED)
    words = ("out", *CAREFUL, "--rate", "8MiB/s", "in", "out")
    for _ in range(5):
        process = job.forebay_starts("stage", *words)
        time.sleep(draw.uniform(0, 0.3))
        process.kill()
        process.communicate()
        for _ in range(2):  # killed again while it goes on
            for one in stage_list(job):
                process = job.forebay_starts("stage", "retry", one["id"])
                time.sleep(draw.uniform(0, 0.2))
                process.kill()
                process.communicate()
        retry_completes(job, tree)
        forget(job)


def running(job):
    (one,) = stage_list(job)
    return one["state"] == "running"


def begun_in_background(job, tree, *words):
    """It would take more than a minute."""
    (tree / "slow").write_bytes(bytes(64 << 20))
    started = stage(job, "out", "--background", "--rate", "1MiB", *words, "in", "out")
    assert started.returncode == 0, started.stderr
    return started.stdout.strip()


def test_cancel_leaves_no_partial_file_and_retry_continues(job, tree):
    id = begun_in_background(job, tree)
    assert running(job)
    assert stage(job, "cancel", id).returncode == 0
    assert not running(job)
    assert parts(job) == []
    (one,) = stage_list(job)
    assert one["state"] == "cancelled" and one["missing_files"] > 0
    assert stage(job, "wait", id).returncode == 123
    # As it was asked for, it would take a minute: killed, then begun again without a rate.
    forget(job)
    assert stage(job, "out", "in", "out").returncode == 0
    assert tree_state(job.directory / "out") == tree_state(tree)


def test_second_process_does_not_carry_out_the_same_staging(job, tree):
    id = begun_in_background(job, tree)
    second = stage(job, "retry", id)
    assert second.returncode == 1
    refused(second, "in hand", "hint: wait for it, or cancel it")
    assert stage(job, "cancel", id).returncode == 0


def test_background_staging_can_be_waited_for(job, tree):
    started = stage(job, "out", "--background", "in", "out")
    id = started.stdout.strip()
    assert stage(job, "wait", id).returncode == 0
    (one,) = stage_list(job)
    assert (one["id"], one["state"], one["placed_files"]) == (id, "done", 26)
    assert tree_state(job.directory / "out") == tree_state(tree)


def test_ctrl_c_stops_staging_and_leaves_no_partial_file(job, tree):
    (tree / "slow").write_bytes(bytes(8 << 20))
    process = job.forebay_starts("stage", "out", "--rate", "1MiB", "in", "out")
    status, err = job.stop_when(process, lambda: parts(job), signal.SIGINT)
    assert status == 123 and "staging was stopped" in err and "forebay stage retry" in err
    assert parts(job) == []


def test_stage_in_lists_and_single_files_are_copied(job, tree):
    assert stage(job, "in", "in", "store in").returncode == 0
    assert tree_state(job.directory / "store in") == tree_state(tree)
    (job.directory / "list").write_text("in/large 'a b/large'\n\nin/deep/small\\ 0 c/\n")
    assert stage(job, "out", "--list", "list").returncode == 0
    assert (job.directory / "a b" / "large").read_bytes() == (tree / "large").read_bytes()
    assert (job.directory / "c" / "small 0").exists()
    (job.directory / "list").write_text("in/large x\nin/large\n")
    wrong = stage(job, "out", "--list", "list")
    assert wrong.returncode == 1
    refused(wrong, "list: line 2: a source without a target", "hint: ")


@pytest.mark.parametrize(
    ("source", "reason"), [("nothing", "does not exist"), ("loop", "symbolic links"), ("fifo", "is not a file")]
)
def test_unusable_source_is_refused_and_leaves_nothing(job, tree, source, reason):
    (job.directory / "loop").symlink_to("loop")
    os.mkfifo(job.directory / "fifo")
    done = stage(job, "out", source, "out")
    assert done.returncode == 1
    refused(done, reason)
    assert not (job.directory / "out").exists() and stage_list(job) == []


def test_special_file_is_reported_and_the_rest_arrives(job, tree):
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
        done = stage(job, "out", "in", "out")
    assert done.returncode == 123
    refused(done, "in/fifo: it is a fifo, socket or device", "in/socket: it is a fifo")
    for name in ("fifo", "socket"):
        (tree / name).unlink()
    (one,) = stage_list(job)
    failed = json.loads(stage(job, "list", "--failed", "--json", one["id"]).stdout)
    assert len(failed[0]["failures"]) == 2
    assert stage(job, "retry", one["id"]).returncode == 0
    assert tree_state(job.directory / "out").keys() == tree_state(tree).keys()


def test_two_sources_for_one_destination_are_an_error(job, tree):
    (job.directory / "list").write_text("in/large x\n'in/deep/small 0' x\n")
    done = stage(job, "out", "--list", "list")
    assert done.returncode == 123
    refused(done, "goes already", "hint: give one of them another destination")
    assert (job.directory / "x").read_bytes() == (tree / "large").read_bytes()


def test_two_concurrent_stagings_of_one_file_leave_a_complete_one(job, tree):
    both = [job.forebay_starts("stage", "out", "in/large", "x") for _ in range(2)]
    assert [process.communicate() and process.returncode for process in both] == [0, 0]
    assert (job.directory / "x").read_bytes() == (tree / "large").read_bytes()
    assert parts(job) == []


@pytest.fixture
def small(job):
    """A target with room for one MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a file system of one MiB")
    target = job.directory / "small"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", target], check=True)
    yield target
    subprocess.run(["umount", target], check=True)


@pytest.mark.parametrize("options", [(), ("--threads", "1", "--piece", "64KiB")])
def test_full_target_loses_nothing_and_retry_completes_once_there_is_room(job, tree, small, options):
    (tree / "huge").write_bytes(random.Random(SEED).randbytes(2 << 20))
    done = stage(job, "out", *options, "in", "small/out")
    assert done.returncode == 123
    refused(done, "huge: cannot write", "No space left", "bytes are free there", "hint: free space")
    (one,) = stage_list(job)
    assert (one["missing_files"], one["missing_bytes"]) == (1, 2 << 20)
    assert parts(job) == []
    subprocess.run(["mount", "-o", "remount,size=8M", small], check=True)
    assert stage(job, "retry", one["id"]).returncode == 0
    assert tree_state(small / "out") == tree_state(tree)


def test_vanished_target_directory_is_created_again(job, tree):
    (job.directory / "out" / "deep" / "small 0").mkdir(parents=True)
    assert stage(job, "out", "in", "out").returncode == 123
    (one,) = stage_list(job)
    remove_tree(job.directory / "out")
    assert stage(job, "retry", one["id"]).returncode == 0
    assert (job.directory / "out" / "deep" / "small 0").read_bytes() == (tree / "deep" / "small 0").read_bytes()


def test_attributes_the_target_supports_are_kept_and_others_named(job, tree):
    try:
        os.setxattr(tree / "large", "user.origin", b"run 7")
    except OSError:
        pytest.skip("the file system of the tests has no extended attributes")
    # u::rw- u:1:r-- g::r-- m::r-- o::---, as the kernel writes it
    entry = (
        lambda tag, rights, who=0xFFFFFFFF: tag.to_bytes(2, "little")
        + rights.to_bytes(2, "little")
        + who.to_bytes(4, "little")
    )
    acl = b"\x02\0\0\0" + entry(1, 6) + entry(2, 4, 1) + entry(4, 4) + entry(16, 4) + entry(32, 0)
    os.setxattr(tree / "deep" / "small 0", "system.posix_acl_access", acl)
    os.setxattr(tree / "deep", "user.of a directory", b"too")
    assert stage(job, "out", "in", "out").returncode == 0
    out = job.directory / "out"
    assert os.getxattr(out / "large", "user.origin") == b"run 7"
    assert os.getxattr(out / "deep" / "small 0", "system.posix_acl_access") == acl
    assert os.getxattr(out / "deep", "user.of a directory") == b"too"


def test_owners_are_kept_where_that_is_permitted(job, tree):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(tree / "large", 1234, 2345)
    os.lchown(tree / "dangling", 1234, 2345)
    assert stage(job, "out", "in", "out").returncode == 0
    for name in ("large", "dangling"):
        status = (job.directory / "out" / name).lstat()
        assert (status.st_uid, status.st_gid) == (1234, 2345)
    os.chown(job.directory / "out" / "large", 0, 0)
    assert stage(job, "out", "in", "out").returncode == 0
    assert (job.directory / "out" / "large").stat().st_uid == 1234, "mended though the content is there"


def test_unreadable_source_is_named_with_a_remedy(job, tree):
    if os.geteuid() == 0:
        job.as_nobody()
        for path in [tree, *tree.rglob("*")]:
            os.lchown(path, job.user, job.user)
    os.chmod(tree / "deep" / "small 0", 0)
    done = stage(job, "out", "in", "out")
    assert done.returncode == 123
    refused(done, "small 0: cannot open", "Permission denied", "hint: get the right to")
    os.chmod(tree / "deep" / "small 0", 0o600)
    (one,) = stage_list(job)
    assert stage(job, "retry", one["id"]).returncode == 0


def test_damaged_journal_is_reported_with_a_hint(job, tree):
    id = begun_in_background(job, tree)
    assert stage(job, "cancel", id).returncode == 0
    (job.state / "stagings" / f"{id}.journal").write_bytes(b"\x5a" * 8192)
    done = stage(job, "retry", id)
    assert done.returncode == 1
    refused(done, "is damaged", "hint: files at the destinations are complete")
    assert stage(job, "status").returncode == 1


def test_failed_stage_out_of_a_job_is_reported_and_continued(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo a > $DW_JOB_STRIPED/out/a; echo b > $DW_JOB_STRIPED/out/b", DW, STAGE_OUT
    )
    (job.directory / "results" / "b").mkdir(parents=True)
    assert job.run().returncode == 123
    (shown,) = json.loads(job.command("status", "--json").stdout)
    assert (shown["missing_files"], shown["missing_bytes"], shown["undrained"]) == (1, 2, True)
    ((path, reason),) = shown["failures"]
    assert path.endswith("/out/b") and "a directory stands at its place" in reason
    assert "1 file, 2 B missing" in job.command("status").stdout
    (job.directory / "results" / "b").rmdir()
    arrived = (job.directory / "results" / "a").stat()
    done = job.command("stage", "retry", shown["job_id"])
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "b").read_text() == "b\n"
    assert (job.directory / "results" / "a").stat() == arrived, "what has arrived is not staged out again"
    job.leaves_nothing()


def test_files_written_into_a_kept_allocation_are_staged_out(job):
    """The journal is no reason to overlook what was changed after the stage-out."""
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo a > $DW_JOB_STRIPED/out/a",
        DW,
        STAGE_OUT,
        "#DW stage_out type=file source=$DW_JOB_STRIPED/late destination=%d/late",
    )
    assert job.run().returncode == 123
    (allocation,) = job.allocations()
    (allocation / "striped" / "out" / "a").write_text("newer\n")
    (allocation / "striped" / "late").write_text("late\n")
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / "a").read_text() == "newer\n"
    assert (job.directory / "late").read_text() == "late\n"
    job.leaves_nothing()


def test_job_killed_in_its_stage_out_is_continued(job):
    job.script("mkdir $DW_JOB_STRIPED/out; for i in 1 2 3; do echo $i > $DW_JOB_STRIPED/out/$i; done", DW, STAGE_OUT)
    killed = 0
    results = job.directory / "results"
    for call, number, path in (("fsync", 1, results), ("syncfs", 1, None), ("rename", 5, None), ("pwrite64", 30, None)):
        killed += kill_at_syscall(job, call, number, "run", *job.where, "job.sh", threads=True, path=path) is not None
        assert job.command("clean", "--kill").returncode == 0
        job.leaves_nothing()
        subprocess.run(["rm", "-rf", job.directory / "results"], check=True)
    assert killed >= 3


def test_results_removed_since_are_staged_out_again(job):
    """A scratch file system that is purged between the job and the cleaning up after it."""
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo a > $DW_JOB_STRIPED/out/a; echo b > $DW_JOB_STRIPED/out/b", DW, STAGE_OUT
    )
    (job.directory / "results" / "b").mkdir(parents=True)
    assert job.run().returncode == 123
    shutil.rmtree(job.directory / "results")
    assert job.command("clean").returncode == 0
    assert {path.name: path.read_text() for path in (job.directory / "results").iterdir()} == {"a": "a\n", "b": "b\n"}
    job.leaves_nothing()


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_destination_inside_the_allocation_is_refused(job, store):
    """What would arrive there would be removed with the allocation."""
    if store == "memory":
        job.in_memory()
    job.script(
        "mkdir -p $DW_JOB_STRIPED/out/run $DW_JOB_STRIPED/other; echo a > $DW_JOB_STRIPED/out/run/a; echo b > $DW_JOB_STRIPED/out/b\n"
        "ln -s $DW_JOB_STRIPED/other results/run",
        DW,
        STAGE_OUT,
    )
    (job.directory / "results").mkdir()
    done = job.run()
    assert done.returncode == 123 and "it is in the allocation itself" in done.stderr
    assert (job.directory / "results" / "b").read_text() == "b\n"
    (job.directory / "results" / "run").unlink()
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / "run" / "a").read_text() == "a\n"
    job.leaves_nothing()


@root_only
@pytest.mark.parametrize("checksum", [(), ("--checksum",)])
def test_equal_file_of_a_colleague_is_there(build, checksum):
    """In a directory where both may write: only the owner may set its mode."""
    with reachable(build) as job:
        job.temporary.chmod(0o1777)
        job.directory.chmod(0o777)
        for directory, user, mode in (("in", 40001, 0o600), ("out", 40002, 0o644)):
            (job.directory / directory).mkdir()
            (job.directory / directory).chmod(0o777)
            path = job.directory / directory / "file"
            path.write_text("equal\n")
            os.chown(path, user, user)
            path.chmod(mode)
            os.utime(path, ns=(10**18, 10**18))
        done = as_user(job, 40001, "stage", "out", *checksum, "in", "out")
        assert done.returncode == 0, done.stderr
        assert "note: the mode of another user's file could not be set: 1 times" in done.stderr
        assert (job.directory / "out" / "file").stat().st_mode & 0o777 == 0o644
