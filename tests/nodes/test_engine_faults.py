"""What a job of several nodes meets: its daemons, agents, launchers or `forebay run` are killed or stopped, or a node
is cut off. No wrong bytes, no missing file, errors instead of hangs, and nothing is left."""

import hashlib
import json
import pathlib
import signal
import time

import pytest

from support.bed_processes import send
from support.node_jobs import STRIPED, node_job
from support.nodes import PYTHON, ended, nodes
from support.waiting import wait_until

STORE_BYTES = 1 << 30
LOAD = pathlib.Path(__file__).parents[1] / "programs" / "nodes" / "load.py"
#: A mount that does not answer is given up after so long in these tests, and a cut off agent ends after so long.
HANG_S = 12
#: Other nodes wait so long for what a mount that died had in use.
SESSION_S = 30
LIMITS = {"FOREBAY_ENGINE_HANG_S": HANG_S, "FOREBAY_AGENT_LOST_S": 60}
SCRIPT = f"""{STRIPED.replace("64MiB", "256MiB")}
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=HERE/out
mkdir $DW_JOB_STRIPED/out
for node in n1 n2; do
    ssh $node "PYTHON LOAD $DW_JOB_STRIPED/out $node HERE/go HERE/answer-$node" &
done
hold
wait
exit 0"""


@pytest.fixture
def bed(build):
    """Two nodes for one test: what a failed one leaves disturbs no other."""
    with nodes(2, build, STORE_BYTES, clean_s=20) as bed:
        yield bed


@pytest.fixture
def load(bed, request):
    """A job under load on both nodes."""

    def make(*options, user="ada", script=SCRIPT):
        program = bed.copied(LOAD)
        text = script.replace("PYTHON", str(PYTHON)).replace("LOAD", str(program))
        name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
        return node_job(bed, text, *options, user=user, name=name)

    return make


def kill(bed, node, words, number=signal.SIGKILL):
    """Signals processes of a node whose command line begins so, paths apart."""
    found = [pid for pid, line in bed.processes(node) if begins(line, words.split())]
    assert found, (words, bed.processes(node))
    for pid in found:
        send(pid, number)


def begins(line, words):
    return [word.rsplit("/", 1)[-1] for word in line[: len(words)]] == words


def answers(job, count=2):
    """What the load found, of the nodes that lived."""
    wait_until(lambda: len(list(job.folder.glob("answer-*"))) >= count, 30, "the answers of the load")
    return {path.name[-2:]: json.loads(path.read_text()) for path in job.folder.glob("answer-*")}


def content(node, number):
    """As the load writes it."""
    return hashlib.sha256(f"{node} {number}".encode()).digest() * 2048


def end(job, run, seconds=120):
    done = job.release(run, check=False, seconds=seconds)
    return done, answers(job)


def assert_delivered(job, found):
    """Every file that was synced is there, with its bytes."""
    for node, answer in found.items():
        assert answer["files"] > 0 and answer["wrong"] == [], found
        for number in range(answer["files"]):
            assert job.path(f"out/{node}-{number}").read_bytes() == content(node, number), (node, number)


@pytest.mark.parametrize(
    ("node", "words"),
    [("n1", "forebay __node"), ("n2", "forebay __node"), ("n1", "ssh")],
    ids=["agent-here", "agent-there", "launcher"],
)
def test_agents_are_replaced(bed, load, node, words):
    job = load()
    run = job.start(**LIMITS)
    time.sleep(1)
    if words == "ssh":
        bed.kill("n1", "__node")  # the launcher and the agent here
    else:
        kill(bed, node, words)
    time.sleep(5)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert "connected again" in done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.left() == []


@pytest.mark.parametrize("daemon", ["ceph-osd", "ceph-mds", "ceph-mon"])
def test_lost_server_without_copies_ends_in_errors(bed, load, daemon):
    job = load()
    run = job.start(**LIMITS)
    time.sleep(1)
    kill(bed, "n1", daemon)
    time.sleep(6)
    done, found = end(job, run)
    assert done.returncode != 0
    assert "operations on the job's files fail from now on" in done.stderr, done.stderr
    assert all(answer["errors"] and answer["wrong"] == [] for answer in found.values()), found
    assert all(answer["longest_s"] < 10 for answer in found.values()), found
    (kept,) = job.jobs()
    assert job.forebay("clean", kept["job_id"], "--discard", check=False).returncode == 0
    assert job.left() == []


@pytest.mark.parametrize(("node", "daemon"), [("n2", "ceph-osd"), ("n1", "ceph-mds"), ("n2", "ceph-mds")])
def test_lost_server_with_copies_is_not_noticed_by_the_job(bed, load, node, daemon):
    job = load("--redundancy", 2)
    run = job.start(**LIMITS)
    time.sleep(1)
    kill(bed, node, daemon)
    time.sleep(6)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert "ended" in done.stderr and node in done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.left() == []


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_lost_mount_fails_on_its_node_and_the_data_are_delivered(bed, load, node):
    job = load()
    run = job.start()
    time.sleep(1)
    kill(bed, node, "ceph-fuse")
    time.sleep(SESSION_S + 8)
    done, found = end(job, run)
    other = "n2" if node == "n1" else "n1"
    assert "mount ended" in done.stderr, done.stderr.splitlines()
    assert set(found[node]["errors"]) <= {"ENOTCONN", "ECONNABORTED"} and found[node]["errors"], found
    assert found[other]["errors"] == {} and done.returncode == 0, (found, done.stderr)
    assert_delivered(job, found)
    assert job.left() == []


@pytest.mark.xfail(strict=True, reason="status says elsewhere: /proc of some processes of the user cannot be read")
def test_killed_run_leaves_what_clean_delivers(bed, load):
    job = load()
    run = job.start(**LIMITS)
    time.sleep(1)
    kill(bed, "n1", "forebay run")
    run.wait(timeout=30)
    job.path("go").touch()
    found = answers(job)
    wait_until(lambda: not any("load.py" in " ".join(line) for _, line in bed.processes("n2")), 20)
    (left,) = job.jobs()
    assert left["nodes"]["names"] == ["n1", "n2"], left
    assert left["state"] == "left" and left["undrained"], left
    job.forebay("clean", left["job_id"], "--kill")
    assert_delivered(job, found)
    assert job.left() == []


@pytest.mark.parametrize("daemon", ["ceph-osd", "ceph-mds", "ceph-fuse"])
def test_stopped_daemon_that_goes_on_is_only_slow(bed, load, daemon):
    job = load()
    run = job.start(**LIMITS)
    time.sleep(1)
    kill(bed, "n1", daemon, signal.SIGSTOP)
    time.sleep(6)
    kill(bed, "n1", daemon, signal.SIGCONT)
    time.sleep(3)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)


def test_short_loss_of_the_network_is_only_slow(bed, load):
    job = load()
    run = job.start(**LIMITS)
    time.sleep(1)
    bed.link("n2", "down")
    time.sleep(5)
    bed.link("n2", "up")
    time.sleep(8)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)


@pytest.mark.parametrize("after_s", [0.3, 0.8, 1.5, None])
def test_interrupt_leaves_nothing(bed, load, after_s):
    job = load()
    if after_s is None:
        run = job.start(**LIMITS)
    else:
        run = job.popen(**LIMITS)
        time.sleep(after_s)
    run.send_signal(signal.SIGINT)
    done = ended(run, check=False, seconds=60)
    assert done.returncode != 0
    wait_until(lambda: job.left() == [], 15, f"the removal of {job.left()}, {done.stderr}")
