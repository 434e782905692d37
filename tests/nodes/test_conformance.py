"""`forebay __conformance` on plain directories, and on a file system that is not coherent: two mounts of mergerfs
whose caches are valid for a minute, each in the mount namespace of a node."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile

import pytest

from support.strace import few
from support.waiting import wait_until

#: What a node with such caches cannot keep.
BROKEN_BY_CACHES = {
    "overwritten", "overwritten_while_open", "overwritten_within_page", "overwritten_same_size", "neighbours_in_page",
    "in_turn", "written_hole", "extended", "extended_while_open", "truncated", "truncated_and_extended",
    "mode", "mode_while_open", "mode_of_directory", "times", "time_of_write", "owner", "links", "negative_lookup",
    "negative_lookup_of_directory", "negative_lookup_of_rename", "renamed", "renamed_over", "kind_changed",
    "symlink_changed", "listed", "time_of_directory", "mapped_write", "mapped_read", "mapped_neighbours",
    "record_lock_across", "record_lock_count", "record_lock_death_across", "file_lock_across", "file_lock_count",
    "file_lock_death_across",
}  # fmt: skip
#: What these caches do not touch: files and names that nobody has looked at before.
KEPT_WITH_CACHES = {"read_after_write", "read_while_open", "created", "exclusive_race", "listed_in_large"}
#: The only checks that a plain directory may leave out, with the reason.
NOT_OFFERED = {
    "unnamed_file": "overlay file systems may have no O_TMPFILE",
    "direct": "tmpfs has O_DIRECT since Linux 6.6 only",
    "attribute": "tmpfs has attributes of users since Linux 6.6 only",
    "attribute_list": "the same",
    "attribute_of_directory": "the same",
    "extended_attribute": "the same",
    "change_owner": "only root changes an owner",
    "owner": "only root changes an owner",
    "rename_exchange": "overlay file systems may not exchange names",
}
CACHES = "cache.files=full,cache.entry=60,cache.attr=60,cache.negative_entry=60,cache.readdir=true,cache.symlinks=true"


class Mount:
    """A node: a mount namespace with mergerfs at the mount point that all nodes name."""

    def __init__(self, data: pathlib.Path, mount_point: pathlib.Path):
        self.mount_point = mount_point
        options = f"{CACHES},minfreespace=0,allow_other"
        words = ["mergerfs", "-f", "-o", options, str(data), str(mount_point)]
        script = f"{shlex.join(words)} & echo $!; exec sleep infinity"
        command = ["unshare", "-m", "--propagation", "private", "sh", "-c", script]
        self.keeper = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.daemon = int(self.keeper.stdout.readline())
        waiting = ["sh", "-c", f"until mountpoint -q {shlex.quote(str(mount_point))}; do sleep 0.05; done"]
        subprocess.run([*self.prefix(), *waiting], check=True, timeout=60)

    def prefix(self) -> list[str]:
        return ["nsenter", "-t", str(self.keeper.pid), "-m"]

    def close(self):
        os.killpg(self.keeper.pid, signal.SIGCONT)
        os.killpg(self.keeper.pid, signal.SIGKILL)  # the mount ends with its daemon and its namespace
        self.keeper.wait()


@pytest.fixture
def two_mounts(tmp_path):
    data, mount_point = tmp_path / "data", tmp_path / "mnt"
    data.mkdir()
    mount_point.mkdir()
    nodes = [Mount(data, mount_point), Mount(data, mount_point)]
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture
def forebay(build, tmp_path):
    """The command under a name of its own, by which its processes are found."""
    name = tmp_path / "forebay"
    name.symlink_to(build / "bin" / "forebay")
    return name


def words(forebay, prefixes, directory, *options):
    nodes = [option for prefix in prefixes for option in ("--on", shlex.join([*prefix, str(forebay)]))]
    return [forebay, "__conformance", "run", *nodes, *options, directory]


def report(forebay, prefixes, directory, *options):
    command = words(forebay, prefixes, directory, "--json", *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    found = json.loads(done.stdout)
    good = all(check["outcome"] in ("kept", "not_supported") for check in found["checks"])
    assert done.returncode == int(not good), done.stderr
    return found


def outcome(found, word):
    return {check["name"] for check in found["checks"] if check["outcome"] == word}


def workers(forebay):
    return subprocess.run(["pgrep", "-f", str(forebay)], capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(("where", "count"), few(("memory", 2), ("disk", 2), ("memory", 1), ("memory", 4)))
def test_plain_directory_keeps_every_promise(forebay, tmp_path, where, count):
    """The tests of the crate have the disk with 1, 2 and 4."""
    parent = "/dev/shm" if where == "memory" else tmp_path
    # Each repetition on a disk waits for it many times.
    repetitions = "5" if where == "memory" else "2"
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        found = report(forebay, [[]] * count, directory, "--repetitions", repetitions)
        assert os.listdir(directory) == [] and found["left"] is None
    bad = [check for check in found["checks"] if check["outcome"] not in ("kept", "not_supported")]
    assert bad == []
    assert outcome(found, "not_supported") <= NOT_OFFERED.keys()
    assert len(outcome(found, "kept")) >= (100 if count == 1 else 165)
    assert len(found["nodes"]) == count
    times = {check["repetitions"] for check in found["checks"] if check["outcome"] == "kept"}
    assert max(times) == int(repetitions) and min(times) >= 1
    assert workers(forebay) == []


def test_stale_caches_of_two_mounts_are_found(forebay, two_mounts):
    found = report(forebay, [node.prefix() for node in two_mounts], two_mounts[0].mount_point, "--repetitions", "2")
    broken, kept = outcome(found, "broken"), outcome(found, "kept")
    assert BROKEN_BY_CACHES - broken == set()
    assert KEPT_WITH_CACHES - kept == set()
    # On one node mergerfs keeps nearly all: a check that is always broken proves nothing.
    of_one_node = [check for check in found["checks"] if check["scope"] == "one_node"]
    assert sum(check["outcome"] == "kept" for check in of_one_node) > 100
    stale = {check["name"]: check.get("reason") for check in found["checks"]}
    assert stale["extended"] == "size: 1000 and not 2000"
    assert "ENOENT" in stale["negative_lookup"]


def test_stopped_file_system_gives_no_answer_and_ends_the_run(forebay, two_mounts, tmp_path):
    prefixes = [node.prefix() for node in two_mounts]
    command = words(forebay, prefixes, two_mounts[0].mount_point, "--operation-s-max", "2", "--repetitions", "1")
    # A worker that the kernel does not let end keeps standard error open.
    errors = tmp_path / "errors"
    with errors.open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as run:
        first = run.stdout.readline()
        for node in two_mounts:
            os.kill(node.daemon, signal.SIGSTOP)
        rest, _ = run.communicate(timeout=120)
    assert first.startswith("kept") and run.returncode == 1
    lines = [line for line in rest.splitlines() if not line.startswith(" ")]
    assert sum(line.startswith("no answer within 2 s") for line in lines) == 3, rest
    assert sum(line.startswith("not run") for line in lines) > 100
    assert "without answer" in lines[-1]
    assert "warning: cannot remove" in errors.read_text()
    # The kernel lets some end only when the daemons have answered.
    for node in two_mounts:
        os.kill(node.daemon, signal.SIGCONT)
    wait_until(lambda: workers(forebay) == [], what="the end of the workers")


def stop(pid):
    """Stops a process, and waits until none of its threads answers any more."""
    os.kill(pid, signal.SIGSTOP)

    def states():
        threads = pathlib.Path("/proc").glob(f"{pid}/task/*/stat")
        return {stat.read_text().rpartition(")")[2].split()[0] for stat in threads}

    wait_until(lambda: states() == {"T"})


def test_file_system_that_never_answers_is_an_error(forebay, two_mounts):
    stop(two_mounts[0].daemon)
    command = words(forebay, [two_mounts[0].prefix()], two_mounts[0].mount_point, "--operation-s-max", "1")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    assert f"error: cannot use {two_mounts[0].mount_point}" in done.stderr and "no answer" in done.stderr
    assert "hint:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--on", "forebay"], "required"),
        (["run", "--on", "ssh 'n1", "/tmp"], "open quote"),
        (["run", "--on", "/no/such", "/tmp"], "cannot run /no/such"),
        (["run", "--on", "true", "/tmp"], "its worker has ended"),
        (["run", "--on", "FOREBAY", "--only", "nonsense", "/tmp"], "no check nonsense"),
        (["run", "--on", "FOREBAY", "here"], "not an absolute path"),
        (["run", "--on", "FOREBAY", "/no/such"], "ENOENT"),
        (["run", "--on", "FOREBAY", "--operation-s-max", "0", "/tmp"], "not within"),
    ],
)
def test_wrong_command_is_refused(forebay, arguments, message):
    arguments = [str(forebay) if word == "FOREBAY" else word for word in arguments]
    done = subprocess.run([forebay, "__conformance", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and message in done.stderr, done.stderr


def test_list_names_every_check(forebay):
    listed = subprocess.run([forebay, "__conformance", "list"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    assert len(set(names)) == len(names) >= 180
    assert BROKEN_BY_CACHES | KEPT_WITH_CACHES | NOT_OFFERED.keys() <= set(names)
