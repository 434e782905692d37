"""Trees that are staged, and what has become of them."""

import fnmatch
import json
import os
import pathlib
import random
import stat
import subprocess

import pytest

from support.strace import strace

PIECE = 64 << 10
SEED = 20170501


@pytest.fixture
def tree(job):
    """A source with one of each kind, in the submit directory."""
    source = job.directory / "in"
    (source / "deep" / "empty").mkdir(parents=True)
    for number in range(12):  # as many as are synced together
        (source / "deep" / f"small {number}").write_bytes(bytes([number]) * 1000)
    (source / "leaf").mkdir()
    for number in range(9):  # as many as are renamed together, with their directory
        (source / "leaf" / f"{number}").write_bytes(bytes([number]) * 1000)
    (source / "leaf" / "to 1").symlink_to("1")
    os.chmod(source / "leaf", 0o510)
    (source / "large").write_bytes(random.Random(SEED).randbytes(3 * PIECE + 17))
    os.link(source / "large", source / "deep" / "the same")
    (source / "dangling").symlink_to("nowhere")
    (source / os.fsdecode(b"not \xff utf-8")).write_text("x")
    os.chmod(source / "deep" / "small 1", 0o640)
    os.utime(source / "deep" / "small 2", ns=(1_000_000_000_123_456_789, 1_000_000_000_987_654_321))
    os.chmod(source / "deep", 0o750)
    return source


def tree_state(top):
    """All that a tree has: kinds, contents, modes, times, and which names are one file."""
    found, first = {}, {}
    for path in sorted([top, *top.rglob("*")]):
        status = path.lstat()
        name = str(path.relative_to(top))
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        linked = first.setdefault(status.st_ino, name)
        found[name] = (status.st_mode, status.st_mtime_ns, content, linked)
    return found


def stage(job, *words, **environment):
    return job.command("stage", *words, **environment)


def traced_calls(job, calls: str, *words, options=()):
    """These calls of a forebay command, line by line, with the names of their files; and how it ended."""
    trace = job.directory.parent / "trace"
    tracer = [*strace(), "-f", "-y", "-s", "0", "-e", f"trace={calls}", *options, "-o", trace]
    command = [*tracer, job.forebay, *words]
    done = subprocess.run(command, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
    return trace.read_text().splitlines(), done


def stage_list(job):
    return json.loads(stage(job, "list", "--json").stdout)


def refused(done, *texts):
    for text in texts:
        assert text in done.stderr, done.stderr
    return done


def named(top, pattern: str) -> list[pathlib.Path]:
    """What has such a name below a directory that changes meanwhile; os.walk minds no path that is too long."""
    walked = os.walk(top)
    return [
        pathlib.Path(directory, name)
        for directory, directories, names in walked
        for name in fnmatch.filter(directories + names, pattern)
    ]


def parts(job):
    """Files and directories under temporary names."""
    return named(job.directory, "*.part")


CAREFUL = ("--threads", "1", "--piece", str(PIECE), "--verify", "end")
# Each step of a file is one of these calls; the journal's own steps are writes.
CALLS = [
    "mkdir",
    "openat",
    "pwrite64",
    "ftruncate",
    "fchmod",
    "utimensat",
    "fsync",
    "syncfs",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
]


def arrived(job, tree, was_there=False):
    """All is at the destination; a directory that was there keeps its mode and gets a new time."""
    out, source = tree_state(job.directory / "out"), tree_state(tree)
    if was_there:
        del out["."], source["."]
    assert out == source


def file_states(top):
    """All but the directories, and what is not at its place yet."""
    found = ((name, what) for name, what in tree_state(top).items() if not stat.S_ISDIR(what[0]))
    return {name: what for name, what in found if not any(word.endswith(".part") for word in name.split("/"))}


def retry_completes(job, tree, was_there=False):
    """What was interrupted is gone on with, or begun again if that was before it was written down."""
    left = stage_list(job)
    for one in left:
        done = stage(job, "retry", one["id"])
        assert done.returncode == 0, done.stderr
    if not left:
        assert stage(job, "out", *CAREFUL, "in", "out").returncode == 0
    arrived(job, tree, was_there)
    assert stage_list(job) == []


def remove_tree(directory):
    """Also what only root removes without a change of modes: names in a directory that cannot be written."""
    subprocess.run(["chmod", "-Rf", "u+rwX", directory], check=False)
    subprocess.run(["rm", "-rf", directory], check=True)


def forget(job):
    remove_tree(job.directory / "out")
    remove_tree(job.state / "stagings")
