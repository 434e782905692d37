"""A storage daemon without a copy is lost, with its memory or with its node. What it had fails with EIO on all nodes, all
else goes on, and the stage-out delivers all else and lists what is lost."""

import json
import re
import time

import pytest

from support.node_jobs import node_job
from support.node_load import HANGS, HANG_S, LIMITS, STORE_BYTES, begin, content, end, kill, load_job
from support.nodes import PYTHON, nodes
from support.strace import EVERY_POINT, few
from support.waiting import wait_until

FILES = 40
#: Files with one object, and a large one with some on each daemon.
SCRIPT = """#DW jobdw type=scratch access_mode=striped capacity=256MiB
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=HERE/out
mkdir $DW_JOB_STRIPED/out
(
    cd $DW_JOB_STRIPED/out
    for number in $(seq FILES); do head -c 70000 /dev/urandom > file-$number; done
    head -c 60M /dev/urandom > large
    sync *
    md5sum * > HERE/sums
)
hold
exit 0"""
SAFE = "reads and writes there fail with EIO from now on"
#: The monitor looks every 2 s, and the steps take one.
NOTICED_S = 30


@pytest.fixture
def bed(build):
    with nodes(3, build, STORE_BYTES, clean_s=30) as bed:
        yield bed


@pytest.fixture
def job(bed, request):
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return node_job(bed, SCRIPT.replace("FILES", str(FILES)), name=name)


def monitors_say(job, *commands: dict) -> list[dict]:
    """What the monitors of the job answer."""
    home = job.mount().parent.parent / "ceph"
    actions = [{"monitor": command | {"format": "json"}} for command in commands]
    work = {"config": f"{home}/ceph.conf", "keyring": f"{home}/keyring", "actions": actions}
    job.path("actions.json").write_text(json.dumps(work))
    told = job.bed.run("n1", ["forebay", "__ceph", job.path("actions.json")], job.user).stdout
    return [json.loads(line)["output"] for line in told.splitlines()]


def files_on(job, daemon: int) -> set[str]:
    """The files with their only object on this daemon, as Ceph says."""
    listed = job.bed.run("n1", ["ls", "-i", job.mount() / "out"], job.user).stdout.split()
    inodes = {name: int(inode) for inode, name in zip(listed[::2], listed[1::2], strict=True) if name != "large"}
    query = {"prefix": "osd map", "pool": "data"}
    maps = monitors_say(job, *(query | {"object": f"{inode:x}.00000000"} for inode in inodes.values()))
    return {name for name, place in zip(inodes, maps, strict=True) if place["acting"] == [daemon]}


def lose(job, node: str) -> None:
    kill(job.bed, node, "ceph-osd")
    file = job.mount().parent.parent / "given-up.json"
    is_over = lambda: f'{node}.storage"' in job.bed.run("n1", ["cat", file], check=False).stdout  # noqa: E731
    wait_until(is_over, NOTICED_S, f"the loss of {node}.storage")


def read(job, node: str) -> tuple[dict[str, str], set[str]]:
    """The checksums of what can be read on a node, and the files that fail."""
    done = job.bed.run(node, ["sh", "-c", f"cd {job.mount()}/out && timeout 60 md5sum *"], job.user, check=False)
    sums = {name: checksum for checksum, name in (line.split() for line in done.stdout.splitlines())}
    failed = re.findall(r"md5sum: (\S+): Input/output error", done.stderr)
    assert len(failed) == len(done.stderr.splitlines()), done.stderr
    return sums, set(failed)


def sums_of(job) -> dict[str, str]:
    return {name: checksum for checksum, name in (line.split() for line in job.text("sums").splitlines())}


def shell(job, node: str, words: str):
    return job.bed.run(node, ["sh", "-c", f"cd {job.mount()}/out && {words}"], job.user, check=False)


def test_lost_memory_takes_its_files_only(bed, job):
    run = job.start(**LIMITS)
    sums, expected = sums_of(job), files_on(job, 1) | {"large"}
    assert 3 < len(expected) < FILES
    lose(job, "n2")
    for node in bed.names:
        found, failed = read(job, node)
        assert failed == expected
        assert found == {name: checksum for name, checksum in sums.items() if name not in expected}
    (one, other, *_) = sorted(expected - {"large"})
    # A part of the large file is there.
    parts = [shell(job, "n3", f"dd if=large bs=1M skip={at} count=1 | md5sum").stderr for at in range(0, 60, 4)]
    assert 0 < sum("Input/output error" in part for part in parts) < len(parts)
    assert "I/O error" in shell(job, "n1", f"echo more >> {one}").stderr
    # A file that is emptied and written is whole again, and new files are.
    assert shell(job, "n1", f"echo whole > {one}; rm {other}; echo again > {other}").returncode == 0
    assert shell(job, "n2", "for number in $(seq 40); do echo $number > new-$number || exit 1; done").returncode == 0
    assert shell(job, "n3", f"cat {one} {other} new-7").stdout == "whole\nagain\n7\n"
    listed = shell(job, "n3", f"{PYTHON} -c \"import os; print(os.listxattr('{one}'))\"")
    assert listed.stdout == "[]\n", listed
    done = job.release(run, check=False)
    assert done.returncode == 123 and SAFE in done.stderr, done.stderr
    assert_delivered_but(job, expected - {one, other})
    (kept,) = job.jobs()
    again = job.forebay("clean", kept["job_id"], check=False)
    assert again.returncode != 0 and "Input/output error" in again.stderr, again.stderr
    assert_delivered_but(job, expected - {one, other})
    job.forebay("clean", "--discard", kept["job_id"])
    assert job.leftovers() == []


def assert_delivered_but(job, lost: set[str], said: str = "") -> None:
    sums = sums_of(job)
    delivered = {path.name for path in job.path("out").iterdir()}
    assert {name for name in sums if name not in delivered} == lost, said
    whole = job.bed.run("n1", ["sh", "-c", f"cd {job.path('out')} && md5sum file-*"]).stdout
    assert [line for line in whole.splitlines() if sums.get(line.split()[1]) == line.split()[0]], whole
    for line in whole.splitlines():
        checksum, name = line.split()
        assert checksum == sums[name] or (job.path("out") / name).read_text() in ("whole\n", "again\n"), name


@pytest.mark.soak
def test_mount_that_is_started_again_knows_what_is_lost(bed, job):
    """What Ceph made in place of it reads as zeros."""
    run = job.start()
    expected = files_on(job, 1) | {"large"}
    lose(job, "n2")
    for node in bed.names:
        kill(bed, node, "forebay __mount")
    done = job.release(run, check=False)
    assert done.returncode == 123, done.stderr
    assert done.stderr.count("its mount did not answer, and was started again") == 3, done.stderr
    assert_delivered_but(job, expected, done.stderr)
    (kept,) = job.jobs()
    kill(bed, "n1", "forebay __mount")
    job.forebay("clean", kept["job_id"], check=False)
    assert_delivered_but(job, expected)
    job.forebay("clean", "--discard", kept["job_id"])
    assert job.leftovers() == []


@pytest.mark.soak
def test_second_loss_takes_also_what_was_written_after_the_first(bed, job):
    run = job.start(**LIMITS)
    sums = sums_of(job)
    first, second = files_on(job, 1), files_on(job, 2)
    lose(job, "n2")
    (rewritten, *_) = first
    assert (
        shell(
            job, "n1", f"echo whole > {rewritten}; for i in $(seq 40); do echo $i > new-$i || exit 1; done"
        ).returncode
        == 0
    )
    lose(job, "n3")
    found, failed = read(job, "n1")
    assert first - {rewritten} | second | {"large"} <= failed
    assert {name for name in failed if name.startswith("new-")}, "some of the new files were on n3"
    assert all(found[name] == sums[name] for name in set(sums) & set(found) - {rewritten})
    assert shell(job, "n2", "for i in $(seq 20); do echo $i > last-$i || exit 1; done; cat last-20").stdout == "20\n"
    job.release(run, check=False)
    (kept,) = job.jobs()
    job.forebay("clean", "--discard", kept["job_id"])
    assert job.leftovers() == []


@pytest.mark.soak
def test_two_losses_at_the_same_time_take_the_files_of_both(bed, job):
    run = job.start(**HANGS)
    expected = files_on(job, 1) | files_on(job, 2) | {"large"}
    kill(bed, "n3", "ceph-osd")
    lose(job, "n2")
    wait_until(lambda: read(job, "n1")[1] == expected, NOTICED_S, "the loss of n3.storage")
    time.sleep(HANG_S + 3)  # the mounts are not given up either
    assert shell(job, "n3", "for i in $(seq 20); do echo $i > new-$i || exit 1; done; cat new-20").stdout == "20\n"
    done = job.release(run, check=False)
    assert "operations on the job's files fail" not in done.stderr and "mount ended" not in done.stderr, done.stderr
    assert_delivered_but(job, expected)
    (kept,) = job.jobs()
    job.forebay("clean", "--discard", kept["job_id"])
    assert job.leftovers() == []


@pytest.mark.soak
@pytest.mark.parametrize("delay_s", few(0.4, 0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 1.0, 1.5, kept=1))
def test_load_goes_on_after_the_loss_at_any_moment(bed, delay_s):
    job = load_job(bed, f"moment-{delay_s}")
    run = begin(job, **LIMITS)
    time.sleep(delay_s)
    lose(job, "n2")
    done, found = end(job, run)
    assert done.returncode == 123, done.stderr
    assert all(set(answer["errors"]) <= {"EIO"} and answer["wrong"] == [] for answer in found.values()), found
    # The loss is seen long before a mount that does not answer is given up.
    assert all(answer["longest_s"] < 50 for answer in found.values()), found
    for path in job.path("out").iterdir():
        node, number = path.name.split("-")
        assert path.read_bytes() == content(node, int(number)), path
    (kept,) = job.jobs()
    job.forebay("clean", "--discard", kept["job_id"])
    assert job.leftovers() == []


if EVERY_POINT:  # it takes a minute

    def test_lost_node_takes_its_files_only(bed, job):
        run = job.start(**LIMITS)
        expected = files_on(job, 1) | {"large"}
        bed.link("n2", "down")
        wait_until(lambda: any(SAFE in line for line in run.stderr), what="the loss of the node")
        assert read(job, "n1")[1] == read(job, "n3")[1] == expected
        assert job.release(run, check=False).returncode == 123
        assert_delivered_but(job, expected)
        (kept,) = job.jobs()
        bed.link("n2", "up")
        # The kernel remembers for some seconds that there was no way to the node.
        discard = lambda: job.forebay("clean", "--discard", kept["job_id"], check=False).returncode == 0  # noqa: E731
        wait_until(discard, what="the removal of what was left")
        bed.kill("n2", "sshd:")  # nobody told them that the other end is gone
        assert job.leftovers() == []
