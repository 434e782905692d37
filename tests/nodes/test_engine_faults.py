"""What a job of several nodes meets: its daemons, agents, launchers or `forebay run` are killed or stopped, or a node
is cut off. No wrong bytes, no missing file, errors instead of hangs, and nothing is left."""

import signal
import time

import pytest

from support.bed_processes import PROC, send, user_of
from support.node_load import (
    HANGS,
    LIMITS,
    PROGRAMS,
    STEPS,
    STORE_BYTES,
    answers,
    assert_delivered,
    begin,
    begins,
    end,
    kill,
    load_job,
    read_until,
    wait_for_errors,
    wait_for_progress,
    written,
)
from support.nodes import PYTHON, STORE, USERS, ended, nodes
from support.strace import EVERY_POINT, few
from support.waiting import wait_until

#: Other nodes wait so long for what a mount that died had in use.
SESSION_S = 30


@pytest.fixture
def bed(build):
    """Two nodes for one test: what a failed one leaves disturbs no other."""
    with nodes(2, build, STORE_BYTES, clean_s=20) as bed:
        yield bed


@pytest.fixture
def load(bed, request):
    """A job under load on both nodes."""
    return lambda *options, name="", **more: load_job(bed, request.node.name + name, *options, **more)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("node", "words"),
    few(
        pytest.param("n1", "ssh", id="launcher"),
        pytest.param("n2", "forebay __node", id="agent-there"),
        pytest.param("n1", "forebay __node", id="agent-here"),
    ),
)
def test_agents_are_replaced(bed, load, node, words):
    job = load()
    run = begin(job, **LIMITS)
    if words == "ssh":
        bed.kill("n1", "__node")  # the launcher and the agent here
    else:
        kill(bed, node, words)
    read_until(run, "connected again")
    wait_for_progress(job, bed.names)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.leftovers() == []


@pytest.mark.parametrize(
    ("copies", "lost"),
    [
        (2, ["n1 ceph-osd", "n2 ceph-osd"]),
        *few((1, ["n1 ceph-osd"]), (1, ["n1 ceph-mds"]), (1, ["n1 ceph-mon"]), (2, ["n1 ceph-mon"])),
    ],
)
def test_lost_servers_beyond_the_copies_end_in_errors(bed, load, copies, lost):
    """Two nodes have one monitor, also with two copies."""
    job = load("--redundancy", copies)
    run = begin(job, **LIMITS)
    for server in lost:
        kill(bed, *server.split())
    read_until(run, "operations on the job's files fail from now on")
    wait_for_errors(job, bed.names)
    done, found = end(job, run)
    assert done.returncode != 0
    assert ("lost at least in part if one of them goes down" in done.stderr) == (copies == 1)
    assert "hint: the job's files are lost: they were in memory" in done.stderr
    assert "nothing was deleted" not in done.stderr
    assert all(answer["errors"] and answer["wrong"] == [] for answer in found.values()), found
    # The loss is seen long before a mount that does not answer is given up.
    assert all(answer["longest_s"] < 50 for answer in found.values()), found
    (kept,) = job.jobs()
    assert job.forebay("clean", kept["job_id"], "--discard", check=False).returncode == 0
    assert job.leftovers() == []


@pytest.mark.parametrize(("node", "daemon"), few(("n2", "ceph-osd"), ("n1", "ceph-mds"), ("n2", "ceph-mds")))
def test_lost_server_with_copies_is_not_noticed_by_the_job(bed, load, node, daemon):
    job = load("--redundancy", 2)
    run = begin(job, **LIMITS)
    kill(bed, node, daemon)
    read_until(run, f"{node}.{STEPS[daemon]} ended")
    wait_for_progress(job, bed.names)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert "2 copies, lost if 2 of them go down" in done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.leftovers() == []


@pytest.mark.parametrize(("node", "copies"), few(("n1", 1), ("n2", 1), ("n1", 2), ("n2", 2)))
def test_lost_mount_fails_on_its_node_and_the_data_are_delivered(bed, load, node, copies):
    job = load("--redundancy", copies)
    run = begin(job)
    kill(bed, node, "forebay __mount")
    other = "n2" if node == "n1" else "n1"
    read_until(run, "mount ended")
    wait_for_errors(job, [node])
    done, found = end(job, run)
    assert set(found[node]["errors"]) <= {"ENOTCONN", "ECONNABORTED"} and found[node]["errors"], found
    assert found[other]["errors"] == {} and done.returncode == 0, (found, done.stderr)
    # The metadata server itself waits so long for what the mount had in use.
    assert found[other]["longest_s"] < SESSION_S, found
    assert_delivered(job, found)
    assert job.leftovers() == []


def test_killed_run_leaves_what_clean_delivers(bed, load):
    job = load()
    run = begin(job, **LIMITS)
    kill(bed, "n1", "forebay run")
    run.wait(timeout=30)
    job.path("go").touch()
    found = answers(job)
    wait_until(lambda: [one["state"] for one in job.jobs()] == ["left"], what="the end of the job's processes")
    (left,) = job.jobs()
    assert left["nodes"]["names"] == ["n1", "n2"], left
    assert left["undrained"], left
    job.forebay("clean", left["job_id"], "--kill")
    assert_delivered(job, found)
    assert job.leftovers() == []


def test_clean_reaches_nodes_in_another_way(bed, load):
    """As after the end of a batch job, whose scheduler starts nothing on its nodes any more."""
    via = bed.shared / "via"
    via.write_text('#!/bin/sh\nnode=$1; shift; exec ssh -o BatchMode=yes "$node" "$@"\n')
    via.chmod(0o755)
    job = load("--launcher", f"{via} {{node}}")
    run = begin(job, **LIMITS)
    kill(bed, "n1", "forebay run")
    run.wait(timeout=30)
    job.path("go").touch()
    found = answers(job)
    via.write_text("#!/bin/sh\necho the job has ended >&2; exit 1\n")
    (left,) = job.jobs()
    refused = job.forebay("clean", left["job_id"], "--kill", check=False)
    assert refused.returncode == 1 and "node n2 cannot be reached" in refused.stderr, refused.stderr
    assert "the job has ended" in refused.stderr and "--launcher" in refused.stderr, refused.stderr
    job.forebay("clean", left["job_id"], "--kill", "--launcher", "ssh")
    assert_delivered(job, found)
    assert job.leftovers() == []


@pytest.mark.soak
@pytest.mark.parametrize("daemon", ["ceph-osd", *few("ceph-mds", "ceph-mon")[1:]])
def test_server_that_hangs_ends_in_errors(bed, load, daemon):
    """It lives, but answers nobody."""
    job = load()
    run = begin(job, **HANGS)
    kill(bed, "n1", daemon, signal.SIGSTOP)
    time.sleep(5)
    done, found = end(job, run)
    assert "the mount fails: it does not answer" in done.stderr, done.stderr
    assert all(answer["wrong"] == [] for answer in found.values()), found
    # Files that are open need no monitor.
    assert daemon == "ceph-mon" or all(answer["errors"] for answer in found.values()), found
    (kept,) = job.jobs()
    job.forebay("clean", kept["job_id"], "--discard")
    assert job.leftovers() == []


@pytest.mark.soak
@pytest.mark.parametrize("daemon", few("ceph-osd", "ceph-mds", "forebay __mount"))
def test_stopped_daemon_that_goes_on_is_only_slow(bed, load, daemon):
    job = load()
    run = begin(job, **LIMITS)
    kill(bed, "n1", daemon, signal.SIGSTOP)
    time.sleep(6)
    kill(bed, "n1", daemon, signal.SIGCONT)
    time.sleep(3)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)


@pytest.mark.soak
def test_daemon_that_stops_after_a_loss_is_only_slow(bed, load):
    """It is alone in its groups. Ceph keeps requests for ever that meet the end of its lease."""
    job = load("--redundancy", 2)
    run = begin(job, FOREBAY_ENGINE_HANG_S=30)
    kill(bed, "n1", "ceph-osd")
    time.sleep(6)
    for _ in range(2):
        kill(bed, "n2", "ceph-osd", signal.SIGSTOP)
        time.sleep(5)
        kill(bed, "n2", "ceph-osd", signal.SIGCONT)
        time.sleep(3)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.leftovers() == []


if EVERY_POINT:

    @pytest.mark.parametrize("node", ["n1", "n2"])
    @pytest.mark.parametrize("daemon", ["ceph-osd", "ceph-mds", "ceph-mon", "forebay __mount", "forebay __node"])
    @pytest.mark.parametrize("copies", [1, 2])
    def test_daemon_that_stops_for_30_s_is_only_slow(bed, load, node, daemon, copies):
        on_first_alone = {"ceph-mon"} if copies == 2 else {"ceph-mds", "ceph-mon"}
        if daemon in on_first_alone and node == "n2":
            return
        job = load("--redundancy", copies)
        run = begin(job)
        kill(bed, node, daemon, signal.SIGSTOP)
        time.sleep(30)
        kill(bed, node, daemon, signal.SIGCONT)
        time.sleep(5)
        done, found = end(job, run)
        assert done.returncode == 0, done.stderr
        # The servers may exclude a mount: they wait as long for what it has in use.
        of_node = {"ESHUTDOWN"} if daemon == "forebay __mount" else set()
        assert all(set(answer["errors"]) <= (of_node if name == node else set()) for name, answer in found.items())
        assert_delivered(job, found)

    @pytest.mark.parametrize("daemon", ["ceph-osd", "ceph-mds", "ceph-mon"])
    @pytest.mark.parametrize("node", ["n1", "n2", "n3"])
    def test_lost_server_of_three_nodes_with_copies_is_not_noticed_by_the_job(build, request, daemon, node):
        with nodes(3, build, STORE_BYTES, clean_s=20) as bed:
            job = load_job(bed, request.node.name, "--redundancy", 2)
            run = begin(job, **LIMITS)
            if any(begins(line, [daemon]) for _, line in bed.processes(node)):
                kill(bed, node, daemon)
            time.sleep(8)
            done, found = end(job, run)
            assert done.returncode == 0, done.stderr
            assert all(answer["errors"] == {} for answer in found.values()), found
            assert_delivered(job, found)
            assert job.leftovers() == []


@pytest.mark.parametrize("copies", few(2, 1))
@pytest.mark.soak
def test_short_loss_of_the_network_is_only_slow(bed, load, copies):
    job = load("--redundancy", copies)
    run = begin(job, **LIMITS)
    bed.interrupt_link("n2", 5)
    time.sleep(8)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)


@pytest.mark.soak
@pytest.mark.parametrize(("node", "copies"), few(("n2", 1), ("n1", 1), ("n2", 2), ("n1", 2)))
def test_full_store_is_reported_with_its_node(bed, load, node, copies):
    """On the first node the engine's monitor needs room, and ends. The data themselves are in memory here."""
    job = load("--redundancy", copies)
    run = begin(job, **LIMITS)
    bed.run(node, ["dd", "if=/dev/zero", f"of={STORE}/full", "bs=1M", "status=none"], check=False)
    time.sleep(15)
    done, found = end(job, run)
    bed.run(node, ["rm", f"{STORE}/full"])
    assert f"node {node}: its store is full" in done.stderr, done.stderr
    assert all(answer["wrong"] == [] for answer in found.values()), found
    if done.returncode == 0:
        assert all(answer["errors"] == {} for answer in found.values()), found
        assert_delivered(job, found)
    else:
        assert "operations on the job's files fail from now on" in done.stderr, done.stderr
        job.forebay("clean", job.jobs()[0]["job_id"], "--discard")
    assert job.leftovers() == []


@pytest.mark.soak
@pytest.mark.parametrize("daemon", few("ceph-osd", "ceph-mon", "ceph-mds", "forebay __mount", "forebay __node"))
def test_neighbour_is_untouched(bed, load, daemon):
    """A process of one job dies; the other job of the same nodes does not notice it."""
    first, second = load(user="ada"), load(user="bob", name="neighbour")
    runs = [begin(first, **LIMITS), begin(second, **LIMITS)]
    ours = [pid for pid, line in bed.processes("n1") if begins(line, daemon.split())]
    found = [pid for pid in ours if user_of(PROC / str(pid)) == USERS[first.user]]
    assert found
    for pid in found:
        send(pid, signal.SIGKILL)
    time.sleep(5)
    done, answer = end(second, runs[1])
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert_delivered(second, answer)
    end(first, runs[0])
    for left in first.jobs():
        first.forebay("clean", left["job_id"], "--discard")
    assert first.leftovers() == []


@pytest.mark.parametrize("copies", few(1, 2))
def test_hostile_peers_do_not_disturb_the_job(bed, load, copies):
    """Another user of the machine connects to each port of the engine, is silent, or sends random bytes."""
    job = load("--redundancy", copies)
    run = begin(job, **LIMITS)
    disturbers = [disturb(bed, node, job) for node in bed.names]
    before = written(job)
    time.sleep(6)
    wait_until(lambda: all(now > before[node] + 10 for node, now in written(job).items()), 60, "files of the load")
    done, found = end(job, run)
    assert all(int(ended(disturber).stdout) > 100 for disturber in disturbers)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.leftovers() == []


def disturb(bed, node, job):
    """Another user's program, until the job's load ends."""
    address = bed.address(node)
    lines = bed.run(node, ["ss", "-Hltn", f"src {address} and not sport = 22"]).stdout.splitlines()
    ports = [line.split()[3].rpartition(":")[2] for line in lines]
    assert len(ports) > 1, lines
    program = bed.copied(PROGRAMS / "hostile.py")
    return bed.popen(node, [PYTHON, program, address, ",".join(ports), job.path("go"), 21], "bob")


@pytest.mark.parametrize("after_s", few(0.8, None, 0.3, 1.5))
def test_interrupt_leaves_nothing(bed, load, after_s):
    job = load()
    if after_s is None:
        run = job.start(**LIMITS)
    else:
        run = job.popen(**LIMITS)
        time.sleep(after_s)
    run.send_signal(signal.SIGINT)
    done = ended(run, check=False)
    assert done.returncode != 0
    wait_until(lambda: job.leftovers() == [], what=f"the removal of {job.leftovers()}, {done.stderr}")
