"""A job on all nodes of a test bed that writes and reads while a fault happens, and what it must have found after it."""

import hashlib
import json
import os
import pathlib
import select
import signal
import time

from support.bed_processes import send
from support.node_jobs import STRIPED, NodeJob, node_job
from support.nodes import PYTHON, VirtualNodes
from support.strace import EVERY_POINT
from support.waiting import wait_until

STORE_BYTES = 1 << 30
PROGRAMS = pathlib.Path(__file__).parents[1] / "programs" / "nodes"
#: A mount that does not answer is given up after so long in tests of that.
HANG_S = 12
#: A process may wait so long for a file system that works, on a slow machine.
STUCK_S = 20
#: In others a mount is slow on a machine under load. A cut off agent ends after so long, too.
LIMITS = {"FOREBAY_ENGINE_HANG_S": 60, "FOREBAY_AGENT_LOST_S": 60}
HANGS = LIMITS | {"FOREBAY_ENGINE_HANG_S": HANG_S}
#: The steps of the engine, by their programs.
STEPS = {"ceph-osd": "storage", "ceph-mds": "metadata", "ceph-mon": "monitor"}
#: A job goes on when each node has written so many files since a loss.
FILES = 3
#: The longest wait that is no failure, on a slow machine: the servers' longest limit is 30 s.
WAIT_S = 90
#: Between two files, on each node.
PAUSE_S = 0.02 if EVERY_POINT else 0.1
SCRIPT = f"""{STRIPED.replace("64MiB", "256MiB")}
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=HERE/out
mkdir $DW_JOB_STRIPED/out
for node in NODES; do
    ssh $node "PYTHON LOAD $DW_JOB_STRIPED/out $node HERE/go HERE/answer-$node PAUSE" &
done
hold
wait
exit 0"""


def load_job(bed: VirtualNodes, name: str, *options, user="ada", script=SCRIPT) -> NodeJob:
    """A job under load on all nodes."""
    text = (
        script.replace("PYTHON", str(PYTHON))
        .replace("LOAD", str(bed.copied(PROGRAMS / "load.py")))
        .replace("PAUSE", str(PAUSE_S))
    )
    text = text.replace("NODES", " ".join(bed.names))
    name = "".join(letter if letter.isalnum() else "-" for letter in name)
    return node_job(bed, text, *options, user=user, name=name)


def begin(job: NodeJob, **environment):
    """Starts the job, and waits until each node has written some files."""
    run = job.start(**environment)
    wait_until(lambda: min(written(job).values()) > 2, 60, "the first files of the load")
    return run


def written(job: NodeJob) -> dict[str, int]:
    """The files that each node has created until now."""
    found = job.bed.run("n1", ["ls", job.mount() / "out"], job.user).stdout.split()
    return {node: sum(name.startswith(f"{node}-") for name in found) for node in job.bed.names}


def wait_for_progress(job: NodeJob, names: list[str]) -> None:
    """Until each of these nodes has written further files."""
    before = written(job)

    def goes_on() -> bool:
        now = written(job)
        return all(now[node] >= before[node] + FILES for node in names)

    wait_until(goes_on, WAIT_S, f"files of {', '.join(names)}")


def kill(bed: VirtualNodes, node: str, words: str, number: int = signal.SIGKILL) -> None:
    """Signals processes of a node whose command line begins so, paths apart."""
    found = [pid for pid, line in bed.processes(node) if begins(line, words.split())]
    assert found, (words, bed.processes(node))
    for pid in found:
        send(pid, number)


def kill_everything(bed: VirtualNodes) -> None:
    """Every process of the nodes, and what they start meanwhile."""

    def is_dead() -> bool:
        found = [pid for node in bed.names for pid, _ in bed.processes(node)]
        for pid in found:
            send(pid, signal.SIGKILL)
        return not found

    wait_until(is_dead, what="the end of all processes")


def begins(line: list[str], words: list[str]) -> bool:
    return [word.rsplit("/", 1)[-1] for word in line[: len(words)]] == words


def answers(job: NodeJob, count: int | None = None) -> dict:
    """What the load found, of so many nodes, or of all."""
    expected = len(job.bed.names) if count is None else count

    def complete() -> list:
        # Until it is complete, an answer has the suffix .part.
        return [path for path in job.folder.glob("answer-*") if not path.suffix]

    wait_until(lambda: len(complete()) >= expected, 30, "the answers of the load")
    return {path.name[-2:]: json.loads(path.read_text()) for path in complete()}


def content(node: str, number: int) -> bytes:
    """As the load writes it."""
    return hashlib.sha256(f"{node} {number}".encode()).digest() * 2048


def read_until(run, *texts: str) -> None:
    """Reads the messages of a job until they have all these texts; `end` returns these messages too."""
    run.read_before = getattr(run, "read_before", b"")
    until = time.monotonic() + WAIT_S
    while not all(text.encode() in run.read_before for text in texts):
        readable, _, _ = select.select([run.stderr], [], [], max(until - time.monotonic(), 0))
        part = os.read(run.stderr.fileno(), 1 << 16) if readable else b""
        assert part, (texts, run.read_before)
        run.read_before += part


def wait_for_errors(job: NodeJob, names: list[str]) -> None:
    """Until operations of each of these nodes have failed."""
    met = [job.path(f"answer-{name}.error") for name in names]
    wait_until(lambda: all(path.exists() for path in met), WAIT_S, f"errors of {', '.join(names)}")


def end(job: NodeJob, run, seconds: float = 120):
    """Lets the load end. Nobody waits in uninterruptible sleep when the fault was handled."""
    assert stuck_for(job.bed, STUCK_S) == []
    done = job.release(run, check=False, seconds=seconds)
    done.stderr = getattr(run, "read_before", b"").decode(errors="replace") + done.stderr
    return done, answers(job)


def stuck_for(bed: VirtualNodes, seconds: float) -> list:
    """Processes of the nodes that stay in uninterruptible sleep for so long."""
    stuck = dict(bed.stuck())
    until = time.monotonic() + seconds
    while stuck and time.monotonic() < until:
        time.sleep(0.1)
        now = dict(bed.stuck())
        stuck = {pid: words for pid, words in stuck.items() if pid in now}
    return list(stuck.items())


def assert_delivered(job: NodeJob, found: dict) -> None:
    """Every file that was synced is there, with its bytes."""
    for node, answer in found.items():
        assert answer["files"] > 0 and answer["wrong"] == [], found
        for number in range(answer["files"]):
            assert job.path(f"out/{node}-{number}").read_bytes() == content(node, number), (node, number)
