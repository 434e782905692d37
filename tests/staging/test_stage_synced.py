"""Staging and the disk: what is synced when, what becomes of a sync that fails, and what is believed of half files."""

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

from support import refusing_fuse

from support.job import DW
from support.strace import kill_at_syscall, kill_at_each_syscall, points, traced
from support.waiting import wait_until
from support.persistent import CREATE, STRIPED, USE, root
from support.trees import (
    PIECE,
    SEED,
    file_states,
    forget,
    retry_completes,
    stage_list,
    parts,
    tree_state,
    stage,
    traced_calls,
)

WORDS = ("--threads", "1", "--piece", str(PIECE))
CALLS = "pwrite64,pread64,fsync,syncfs,rename,renameat2"
# A call and the first file that it names.
CALL = re.compile(r"^\d+ +(?P<call>\w+)\((?:\d+<(?P<file>[^>]*)>|(?:AT_FDCWD[^\"]*)?\"(?P<path>[^\"]*)\")")
SMALL = {"few": 3, "many": 20, "leaf": 20}


@pytest.fixture
def source(job, kind):
    """So many small files, those of a leaf in a directory below, or one of four pieces."""
    directory = job.directory / "in"
    small = directory / "leaf" if kind == "leaf" else directory
    small.mkdir(parents=True)
    draw = random.Random(SEED)
    for number in range(SMALL.get(kind, 0)):
        (small / f"small {number}").write_bytes(draw.randbytes(1000))
    if kind == "large":
        (directory / "large").write_bytes(draw.randbytes(3 * PIECE + 17))
    return directory


def below(directory, lines):
    """Calls on this directory and what is in it: what, and on which."""
    found = [match for line in lines if (match := CALL.match(line))]
    named = [(one["call"], one["file"] or one["path"]) for one in found]
    return [(call, name) for call, name in named if (name + "/").startswith(f"{directory}/")]


IN_ORDER = {
    # One by one.
    "few": [*["pwrite64", "fsync"] * 3, *["rename"] * 3, "fsync", "syncfs"],
    # All written, one sync, all renamed, one sync; and one for the modes and times of directories.
    "many": [*["pwrite64"] * 20, "syncfs", *["rename"] * 20, "syncfs", "syncfs"],
    # The same, and all have their names when their directory has its own.
    "leaf": [*["pwrite64"] * 20, "syncfs", "renameat2", "syncfs", "syncfs"],
    "large": [*["pwrite64"] * 4, "fsync", "rename", "fsync", "syncfs"],
}


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("kind", IN_ORDER)
def test_file_is_synced_before_its_rename_and_the_directory_after(job, source, kind, direction):
    out = job.directory / "out"
    lines, done = traced_calls(job, CALLS, "stage", direction, *WORDS, "in", "out")
    assert done.returncode == 0, done.stderr
    assert [call for call, _ in below(out, lines)] == IN_ORDER[kind]
    # What is there already: nobody knows who has synced it.
    lines, done = traced_calls(job, CALLS, "stage", direction, *WORDS, "in", "out")
    assert done.returncode == 0, done.stderr
    assert below(out, lines) == [("syncfs", str(out))]


@pytest.mark.parametrize("kind", IN_ORDER)
def test_existing_file_that_cannot_be_synced_is_not_delivered(job, source, kind):
    out = job.directory / "out"
    assert stage(job, "out", *WORDS, "in", "out").returncode == 0
    inodes = lambda: {path: path.stat().st_ino for path in out.rglob("*") if path.is_file()}  # noqa: E731
    before = inodes()
    where = [word for path in [out, *before] for word in ("-P", path)]
    fails = [*where, "-e", "inject=fsync,syncfs:error=EIO"]
    _, done = traced_calls(job, "fsync,syncfs", "stage", "out", *WORDS, "in", "out", options=fails)
    assert done.returncode == 123, done.stderr
    (one,) = stage_list(job)
    assert (one["placed_files"], one["missing_files"]) == (0, len(before))
    assert all("Input/output error" in failure["reason"] for failure in one["failures"])
    assert stage(job, "retry", one["id"]).returncode == 0
    assert before == inodes(), "nothing was made anew"


FAILING = [("few", "fsync", 4), ("few", "rename", 3), ("many", "syncfs", 2), ("many", "rename", 20)]
FAILING += [("large", "fsync", 2), ("large", "rename", 1)]


@pytest.mark.parametrize(("error", "direction"), [("EIO", "out"), ("ENOSPC", "in")])
@pytest.mark.parametrize(("kind", "call", "times"), FAILING)
def test_failed_sync_or_rename_is_reported_and_retry_completes(job, source, kind, call, times, error, direction):
    out, met = job.directory / "out", 0
    for number in points(times):
        id, where = planned(job, source, direction)
        fails = [*where, "-e", f"inject={call}:error={error}:when={number}"]
        lines, done = traced_calls(job, call, "stage", "retry", id, options=fails)
        hits = below(out, [line for line in lines if "(INJECTED)" in line])
        met += bool(hits)
        assert done.returncode == 123, done.stderr
        assert_failed_alone(job, source, hits)
        assert parts(job) == []
        again = stage(job, "retry", id)
        assert again.returncode == 0, again.stderr
        assert file_states(out) == file_states(source) and stage_list(job) == []
        shutil.rmtree(out)
    assert met == len(points(times))


def planned(job, source, direction):
    """A staging of which nothing has arrived, since directories were in the way; its id, and its files for strace."""
    names = [path.name for path in source.iterdir()]
    places = [job.directory / "out" / name for name in names]
    for place in places:
        place.mkdir(parents=True)
    assert stage(job, direction, *WORDS, "in", "out").returncode == 123
    (one,) = stage_list(job)
    for place in places:
        place.rmdir()
    half = [job.directory / "out" / f".forebay-{one['id']}-{row + 1}.part" for row in range(len(names))]
    return one["id"], [word for path in (job.directory / "out", *places, *half) for word in ("-P", path)]


def assert_failed_alone(job, source, hits):
    """What this call was for has failed, and nothing else; what stands under its name is whole."""
    ((call, name),) = hits
    out, total = job.directory / "out", len(file_states(source))
    (one,) = stage_list(job)
    states = {state: files for state, files in one["by_state"] if files}
    arrived = file_states(out)
    assert all(file_states(source)[name] == what for name, what in arrived.items())
    if not name.endswith(".part"):  # all names are made, and may not be on the disk
        assert (len(arrived), states) == (total, {"failed": total})
    elif call == "syncfs":
        assert (len(arrived), states) == (0, {"failed": total})
    else:
        alone = {"placed": total - 1, "failed": 1}
        assert (len(arrived), states) == (total - 1, {state: files for state, files in alone.items() if files})


@pytest.mark.parametrize("kind", ["leaf"])
@pytest.mark.parametrize("error", ["EINVAL", "EIO"])
def test_directory_without_renameat2_is_renamed_or_filled_file_by_file(job, source, error):
    out = job.directory / "out"
    fails = ["-e", f"inject=renameat2:error={error}"]
    lines, done = traced_calls(job, CALLS, "stage", "out", *WORDS, "in", "out", options=fails)
    assert done.returncode == 0 and stage_list(job) == []
    assert len([call for call, _ in below(out, lines) if call == "rename"]) == (1 if error == "EINVAL" else 20)
    assert tree_state(out) == tree_state(source) and parts(job) == []


@pytest.mark.parametrize("kind", ["leaf"])
@pytest.mark.parametrize(("number", "failed", "is_there"), [(1, 22, False), (2, 20, True)])
def test_directory_sync_failure_is_reported_and_retry_completes(job, source, number, failed, is_there):
    """The first syncs of the thread that has the files and of the one that has the directories, or the former's next."""
    out = job.directory / "out"
    fails = ["-e", f"inject=syncfs:error=EIO:when={number}"]
    _, done = traced_calls(job, "syncfs", "stage", "out", *WORDS, "in", "out", options=fails)
    assert done.returncode == 123 and "Input/output error" in done.stderr
    (one,) = stage_list(job)
    assert one["failed"] == failed
    assert file_states(out) == (file_states(source) if is_there else {}) and parts(job) == []
    assert stage(job, "retry", one["id"]).returncode == 0
    assert tree_state(out) == tree_state(source)


@pytest.mark.parametrize("kind", ["many"])
@pytest.mark.parametrize("call", ["fchmod", "utimensat", "syncfs"])
def test_directory_that_cannot_be_finished_is_reported_and_retry_completes(job, source, call):
    out = job.directory / "out"
    source.chmod(0o751)
    fails = ["-P", out, "-e", f"inject={call}:error=EIO"]
    lines, done = traced_calls(job, call, "stage", "out", *WORDS, "in", "out", options=fails)
    assert [name for name in lines if "(INJECTED)" in name]
    assert done.returncode == 123 and f"{out}: " in done.stderr and "Input/output error" in done.stderr
    (one,) = stage_list(job)
    assert (one["state"], one["failed"], one["missing_files"]) == ("failed", 1, 0)
    assert stage(job, "retry", one["id"]).returncode == 0
    assert tree_state(out) == tree_state(source)


@pytest.mark.parametrize("kind", ["few"])
@pytest.mark.parametrize("call", ["rename", "fsync"])
def test_hard_link_that_fails_at_its_last_step_fails_alone(job, source, call):
    os.link(source / "small 0", source / "the same")
    # The main thread makes hard links; what it does before and after is its journal's.
    for number in range(1, 9):
        id, _ = planned(job, source, "out")
        ended = traced(job, call, f"error=EIO:when={number}", "stage", "retry", id).wait(timeout=300)
        if ended == 123:
            break
        forget(job)
    (one,) = stage_list(job)
    assert (ended, one["placed_files"], one["failed"]) == (123, SMALL["few"], 1)
    assert parts(job) == []
    assert stage(job, "retry", id).returncode == 0
    assert file_states(job.directory / "out") == file_states(source)


@pytest.mark.parametrize("kind", ["few"])
@pytest.mark.parametrize("call", ["utimensat", "fsync", "rename"])
def test_staging_killed_with_single_file_syncs_ends_in_the_same_state(job, source, call):
    words, number = ("stage", "out", *WORDS, "in", "out"), 0
    for number in kill_at_each_syscall(job, call, *words, threads=True, again=lambda: forget(job)):
        retry_completes(job, source)
        forget(job)
    assert number >= 3


# Where one is killed when some files are synced and have no names.
NAMING = {"few": ("rename", 2), "many": ("rename", 2), "leaf": ("renameat2", 1)}


def half_files(job):
    return [file for part in parts(job) for file in (part.iterdir() if part.is_dir() else [part])]


def killed_between_its_sync_and_its_name(job, kind, *options):
    """A staging that was killed so; its journal, and the half files, which get other contents and keep their times."""
    assert kill_at_syscall(job, *NAMING[kind], "stage", "out", *WORDS, *options, "in", "out", threads=True)
    (one,) = stage_list(job)
    left = half_files(job)
    assert left and dict(one["by_state"])["copied"] == 20
    for path in left:
        status = path.stat()
        path.write_bytes(bytes(status.st_size))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return one["id"]


@pytest.mark.parametrize("kind", ["many", "leaf"])
def test_changed_partial_file_is_copied_again(job, source, kind):
    id = killed_between_its_sync_and_its_name(job, kind)
    assert stage(job, "retry", id).returncode == 0
    assert file_states(job.directory / "out") == file_states(source) and parts(job) == []


@pytest.mark.parametrize("kind", ["many", "leaf"])
def test_partial_files_from_before_a_restart_are_copied_again(job, source, kind):
    id = killed_between_its_sync_and_its_name(job, kind, "--verify", "off")
    with sqlite3.connect(job.state / "stagings" / f"{id}.journal") as journal:
        # As a journal of the version before, whose rows have no checksums.
        journal.executescript("PRAGMA user_version = 2; DROP TRIGGER meta_changed")
        journal.execute("UPDATE meta SET value = 'another ' || value WHERE name = 'pieces'")
    assert stage(job, "retry", id).returncode == 0
    assert file_states(job.directory / "out") == file_states(source) and parts(job) == []


@pytest.mark.parametrize("kind", NAMING)
def test_unchanged_partial_file_is_not_copied_again(job, source, kind):
    named = NAMING[kind][1] - 1
    assert kill_at_syscall(job, *NAMING[kind], "stage", "out", *WORDS, "in", "out", threads=True)
    assert len(half_files(job)) == SMALL[kind] - named
    (one,) = stage_list(job)
    lines, done = traced_calls(job, CALLS, "stage", "retry", one["id"])
    assert done.returncode == 0
    assert "pwrite64" not in [call for call, _ in below(job.directory / "out", lines)]
    assert file_states(job.directory / "out") == file_states(source)


def stage_in_of_a_job(job, target, *options, directives=()):
    """What it does to its files there."""
    job.script(":", DW, *directives, f"#DW stage_in type=directory source=%d/in destination={target}/in")
    lines, done = traced_calls(job, CALLS, "run", *job.where, *options, "job.sh")
    assert done.returncode == 0, done.stderr
    calls = below(job.store, lines)
    assert [name for call, name in calls if call == "pwrite64"], "it is seen"
    return [call for call, name in calls if "/in/" in f"{name}/"]


@pytest.mark.parametrize("kind", ["few", "many"])
def test_stage_in_to_persistent_allocation_is_synced(job, source, kind):
    calls = stage_in_of_a_job(job, STRIPED, directives=[CREATE, USE])
    assert calls == IN_ORDER[kind]
    assert file_states(root(job) / "striped" / "in") == file_states(source)
    assert job.command("persistent", "destroy", "proj1", *job.where).returncode == 0


@pytest.mark.parametrize("kind", ["few", "many"])
def test_stage_in_to_job_allocation_syncs_only_before_verification(job, source, kind):
    calls = stage_in_of_a_job(job, "$DW_JOB_STRIPED")
    assert set(calls) == {"pwrite64"}
    calls = stage_in_of_a_job(job, "$DW_JOB_STRIPED", "--stage-verify", "end")
    synced = ["fsync", "fsync", "fsync"] if kind == "few" else ["syncfs"]
    assert [call for call in calls[: calls.index("pread64")] if call != "pwrite64"] == synced
    assert "pwrite64" not in calls[calls.index("pread64") :]


@pytest.mark.parametrize("kind", ["few"])
def test_names_of_new_parents_are_synced(job, source):
    lines, done = traced_calls(job, "fsync", "stage", "out", *WORDS, "in/small 0", "new/a/b/result")
    assert done.returncode == 0, done.stderr
    top = job.directory
    synced = {name for _, name in below(top, lines)}
    assert {str(top), str(top / "new"), str(top / "new/a"), str(top / "new/a/b")} <= synced


@pytest.fixture
def refusing(job):
    """A directory whose server refuses data when a file is closed or synced."""
    if os.getuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("only root can mount FUSE without a program")
    mounted = job.directory / "refusing"
    mounted.mkdir()
    server = subprocess.Popen([sys.executable, refusing_fuse.__file__, mounted])
    wait_until(lambda: os.path.ismount(mounted), process=server)
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)
    server.wait(timeout=60)


@pytest.mark.parametrize("kind", ["few", "many", "leaf", "large"])
def test_data_refused_at_close_are_not_delivered(job, source, refusing, kind):
    done = stage(job, "out", "--threads", "2", "in", refusing / "out")
    assert done.returncode == 123 and "quota" in done.stderr.lower(), done.stderr
    (one,) = stage_list(job)
    assert (one["placed_files"], one["missing_files"]) == (0, len(file_states(source)))
    assert stage(job, "forget", one["id"]).returncode == 0
