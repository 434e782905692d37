"""What other users put into trees and next to destinations, and what a copy never takes over from them."""

import json
import os
import signal
import subprocess

import pytest

from support.persistent import CREATE, USE, root
from support.trees import parts, stage, stage_list
from support.users import as_user, reachable, root_only

ADA, BOB = 40001, 40002
MIB = 1 << 20


@pytest.fixture
def shared(build):
    """Directories that all users can write."""
    with reachable(build) as job:
        for directory in (job.store, job.temporary, job.directory):
            directory.chmod(0o1777)
        yield job


def programs_of_ada(job):
    """A tree of ada with programs that run as her, and as her group."""
    tree = job.directory / "in"
    tree.mkdir()
    for name, mode in (("as-user", 0o4755), ("as-group", 0o2755), ("plain", 0o755)):
        (tree / name).write_text("#!/bin/sh\n")
        os.chown(tree / name, ADA, ADA)
        (tree / name).chmod(mode)
    os.chown(tree, ADA, ADA)
    return tree


def modes(tree):
    return {path.name: path.stat().st_mode & 0o7777 for path in tree.iterdir()}


@root_only
def test_program_of_another_user_does_not_run_with_the_rights_of_who_stages_it(shared):
    tree = programs_of_ada(shared)
    copies = shared.directory / "out-of-bob"
    inodes = []
    for _ in range(2):  # what was staged before is the same file, and does not get the bits later
        done = as_user(shared, BOB, "stage", "out", "--json", "in", "out-of-bob")
        assert done.returncode == 0, done.stderr
        assert modes(copies) == {"as-user": 0o755, "as-group": 0o755, "plain": 0o755}
        inodes.append({path.name: path.stat().st_ino for path in copies.iterdir()})
        if len(inodes) == 1:
            ((text, files, _),) = json.loads(done.stdout)["notes"]
            assert "set-user-ID or set-group-ID bit was not kept" in text and files == 2
    assert inodes[0] == inodes[1]
    (shared.directory / "out-of-bob" / "as-user").chmod(0o4755)  # of an earlier version of Forebay
    assert as_user(shared, BOB, "stage", "out", "in", "out-of-bob").returncode == 0
    assert modes(shared.directory / "out-of-bob")["as-user"] == 0o755
    for user in (ADA, 0):  # her own, and with its owner
        done = as_user(shared, user, "stage", "out", "in", f"out-{user}")
        assert done.returncode == 0, done.stderr
        assert modes(shared.directory / f"out-{user}") == modes(tree)
        assert (shared.directory / f"out-{user}" / "as-user").stat().st_uid == ADA


@root_only
@pytest.mark.parametrize("kind", ["file", "fifo", "link"])
def test_partial_file_that_another_user_put_there_gets_no_bytes(job, kind):
    (job.directory / "in").mkdir()
    content = os.urandom(8 * MIB)
    (job.directory / "in" / "large").write_bytes(content)
    words = ("--piece", "1MiB", "--threads", "1", "--rate", "8MB", "in", "out")
    process = job.forebay_starts("stage", "out", *words)
    job.stop_when(process, lambda: stage_list(job) and stage_list(job)[0]["copied_bytes"] > 2 * MIB, signal.SIGKILL)
    (part,) = parts(job)
    size = part.stat().st_size
    part.unlink()
    theirs = job.directory / "theirs"
    theirs.write_bytes(bytes(size))
    if kind == "file":
        theirs.rename(part)
    elif kind == "fifo":
        os.mkfifo(part, 0o666)
    else:
        part.symlink_to(theirs)
    os.lchown(part, BOB, BOB)
    held = os.open(part if kind == "file" else theirs, os.O_RDONLY)
    (one,) = stage_list(job)
    done = job.command("stage", "retry", one["id"])
    assert done.returncode == 0, done.stderr
    assert (job.directory / "out" / "large").read_bytes() == content
    assert os.pread(held, size, 0) == bytes(size)
    os.close(held)


@root_only
@pytest.mark.parametrize("words", [("in/file", "link/file"), ("in/file", "link/below/file"), ("in", "link/in")])
def test_root_follows_no_link_of_another_user_to_a_destination(job, words):
    (job.directory / "in").mkdir()
    (job.directory / "in" / "file").write_text("x")
    elsewhere = job.directory / "elsewhere"
    elsewhere.mkdir()
    (job.directory / "link").symlink_to(elsewhere)
    os.lchown(job.directory / "link", BOB, BOB)
    done = stage(job, "out", *words)
    assert done.returncode == 123 and "which root does not follow" in done.stderr, done.stderr
    assert list(elsewhere.iterdir()) == []


@root_only
def test_drain_of_root_follows_no_link_of_another_user(job):
    elsewhere = job.directory / "elsewhere"
    elsewhere.mkdir()
    (job.directory / "out").symlink_to(elsewhere)
    os.lchown(job.directory / "out", BOB, BOB)
    job.script(
        'mkdir "$DW_JOB_STRIPED/out"; echo x > "$DW_JOB_STRIPED/out/file"; sleep 1',
        "#DW jobdw type=scratch access_mode=striped capacity=1MiB",
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out",
    )
    done = job.run("--drain", "*")
    assert done.returncode == 123 and "which root does not follow" in done.stderr, done.stderr
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("size", [1 << 40, (256 << 20) + 1])
def test_list_that_is_too_large_is_refused(job, size):
    with open(job.directory / "list", "wb") as file:
        file.truncate(size)
    job.script(
        "true", "#DW jobdw type=scratch access_mode=striped capacity=1MiB", "#DW stage_in type=list source=%d/list"
    )
    done = job.run()
    assert done.returncode == 125 and "more than 256 MiB" in done.stderr, done.stderr


def test_uses_of_an_allocation_that_are_a_link_are_not_followed(job):
    job.script("true", CREATE)
    assert job.run().returncode == 0
    elsewhere = job.directory / "elsewhere"
    (root(job) / "uses").rename(elsewhere)
    (root(job) / "uses").symlink_to(elsewhere)
    job.script("true", USE)
    done = job.run()
    assert done.returncode == 125 and "its list of uses is no directory of its owner" in done.stderr, done.stderr
    assert list(elsewhere.iterdir()) == []


@root_only
def test_clean_ends_no_process_that_another_user_names(job):
    job.script("true", CREATE)
    assert job.run().returncode == 0
    job.script("touch running; sleep 600", USE)
    job.stop_when(job.start(), (job.directory / "running").exists, signal.SIGKILL)
    (use,) = (root(job) / "uses").iterdir()
    victim = subprocess.Popen(["sleep", "600"])
    ticks = int(open(f"/proc/{victim.pid}/stat").read().rsplit(")", 1)[1].split()[19])
    claimed = json.loads(use.read_text())
    claimed["remaining"] = [{"pid": victim.pid, "started_ticks": ticks}]
    use.write_text(json.dumps(claimed))
    os.chown(use, BOB, BOB)
    done = job.command("clean", "--kill")
    assert victim.poll() is None
    victim.kill()
    victim.wait()
    assert done.returncode != 0 and f"belongs to user {BOB}" in done.stderr, done.stderr
    os.chown(use, 0, 0)
    claimed["remaining"] = []
    use.write_text(json.dumps(claimed))
    assert job.command("clean", "--kill").returncode == 0
