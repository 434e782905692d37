"""Jobs on several nodes, nodes that lose their Forebay, and jobs that begin again."""

import json
import os
import shutil
import signal

from support.slurm_batch import DW, STAGE_OUT
from support.slurm_cluster import command_of, descendants
from support.mpi import PROJECT

ON_EACH = '[ -n "${DW_JOB_STRIPED-}" ] || exec srun --wait=0 forebay run "$0"'
BODY = """mkdir ${DW_JOB_STRIPED}out; echo $SLURM_PROCID > ${DW_JOB_STRIPED}out/rank$SLURM_PROCID
touch wrote$SLURM_PROCID; until [ -e go ]; do sleep 0.05; done"""


def lose_forebay(batch, node):
    """kill -9 of `forebay run` on a node."""
    inside = list(descendants(batch.cluster.leader(node)))
    (found,) = [pid for pid in inside if is_run(command_of(pid))]
    os.kill(found, signal.SIGKILL)


def is_run(words):
    return len(words) > 1 and (os.path.basename(words[0]), words[1]) == ("forebay", "run")


def half_a_job(batch):
    """Of two nodes one has lost its Forebay, and with it its half of the results."""
    batch.script(f"{ON_EACH}\n{BODY}", DW, STAGE_OUT)
    job = batch.submit("--nodelist=n1,n2", "--ntasks-per-node=1")
    for rank in (0, 1):
        batch.wait_for_file(f"wrote{rank}")
    lose_forebay(batch, "n2")
    (batch.directory / "go").touch()
    batch.wait(job)
    assert batch.arrived() == ["rank0"], batch.stderr_text()
    batch.cluster.wait(lambda: batch.status("n2")[0]["state"] == "left", lambda: batch.status("n2"))
    (left,) = batch.status("n2")
    assert (left["state"], left["undrained"], left["host"]) == ("left", True, "n2")
    (seen,) = batch.status("n3")
    assert (seen["state"], seen["host"]) == ("elsewhere", "n2")


def test_node_whose_forebay_died_stops_no_other_and_is_drained(users):
    half_a_job(users)
    users.run("srun", "-w", "n2", "forebay", "clean")
    assert users.arrived() == ["rank0", "rank1"]
    assert users.leftovers() == [] and users.status("n2") == []


def test_gather_drains_each_node_and_reports_what_arrived(batch):
    half_a_job(batch)
    (gathered,) = json.loads(batch.run("forebay", "gather", "--json").stdout)
    shown = [gathered[name] for name in ("node", "files", "bytes", "failures", "error")]
    assert shown == ["n2", 1, 2, 0, None]
    assert batch.arrived() == ["rank0", "rank1"] and batch.leftovers() == []
    again = batch.run("forebay", "gather", "--nodes", "n2")
    assert again.stdout == "nothing is left on any node\n" and "n2: nothing is left there" in again.stderr


def test_gather_works_at_the_end_of_a_batch_script(users):
    """On the nodes of the same job; what cannot arrive is told, and stays."""
    users.script(BODY, DW, STAGE_OUT, name="work.sh")
    users.script(
        "srun --wait=0 forebay run work.sh\ntouch ran\nuntil [ -e gather ]; do sleep 0.05; done\nforebay gather >table"
    )
    job = users.submit("--nodelist=n3,n4", "--ntasks-per-node=1")
    for rank in (0, 1):
        users.wait_for_file(f"wrote{rank}")
    for node in ("n3", "n4"):
        lose_forebay(users, node)
    (users.directory / "go").touch()  # what it had started lives on, and is waited for
    users.wait_for_file("ran")
    # One of the two finds something in its way.
    (users.results / "rank1").mkdir(parents=True)
    os.chown(users.results, users.user, users.user)
    (users.directory / "gather").touch()
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "123:0", users.stderr_text()
    rows = [line.split() for line in (users.directory / "table").read_text().splitlines()]
    assert [row[0] for row in rows] == ["NODE", "n3", "n4"]
    assert [row[-1] for row in rows[1:]] == ["0", "1"]
    assert "n4: 1 file did not arrive; nothing was removed there" in users.stderr_text()
    assert len(users.leftovers()) > 0 and users.status("n3")[0]["host"] == "n4"
    (users.results / "rank1").rmdir()
    users.run("forebay", "gather")
    assert users.arrived() == ["rank0", "rank1"] and users.leftovers() == []


def test_node_that_cannot_be_reached_is_named(users):
    half_a_job(users)
    program = users.cluster.build / "bin" / "forebay"
    done = users.run("env", "PATH=/nowhere", program, "gather", check=False)
    assert done.returncode == 1
    assert "error: n2: there is no srun to reach it; use --rsh ssh, or run forebay clean there" in done.stderr
    assert "hint: when it can be reached: forebay gather --nodes n2" in done.stderr
    users.run("forebay", "gather")
    assert users.leftovers() == []


# As ssh does: the words are given to the shell at the other end, and the environment stays here.
REMOTE = """#!/bin/bash
[ "$1" = -q ] && shift
node=$(pgrep -f "^/bin/bash [^ ]*/node.sh $1 ")
exec env -i PATH="$PATH" nsenter --target "$node" --net --mount --uts --pid /bin/sh -c "${*:2}"
"""


def test_gather_reaches_nodes_by_a_remote_shell(roots):
    """Where no Slurm does; only root can enter another host here."""
    roots.state = roots.directory / "state of $USER"
    half_a_job(roots)
    remote = roots.directory / "remote"
    remote.write_text(REMOTE)
    remote.chmod(0o755)
    done = roots.run("forebay", "gather", "--json", "--rsh", "/bin/false", check=False)
    assert done.returncode == 1 and "n2: it did not answer: exit status: 1" in done.stderr
    (gathered,) = json.loads(roots.run("forebay", "gather", "--json", "--rsh", f"'{remote}' -q").stdout)
    assert (gathered["node"], gathered["files"], gathered["error"]) == ("n2", 1, None)
    assert roots.arrived() == ["rank0", "rank1"] and roots.leftovers() == [] and roots.status("n2") == []


def test_requeued_job_continues_from_the_newest_complete_checkpoint(users):
    shutil.copy(PROJECT / "examples" / "slurm" / "restart.sh", users.directory)
    # Newer, but one of its files never arrived.
    torn = users.directory / "checkpoints" / "step-0099"
    torn.mkdir(parents=True)
    (torn / "MANIFEST").write_text(f"{'0' * 64}  rank0\n")
    for path in (torn.parent, torn):
        os.chown(path, users.user, users.user)
    job = users.submit(name="restart.sh")
    users.cluster.wait(
        lambda: (users.directory / "said").exists() and "step 2 is done" in users.stdout_text(), "no step"
    )
    users.run("scontrol", "requeue", job)
    users.cluster.wait(lambda: users.stdout_text().count("begins behind") == 2, "it did not begin again")
    assert users.wait(job) == "COMPLETED", users.stderr_text()
    said = users.stdout_text().splitlines()
    begun = [line for line in said if "begins" in line]
    last = max(int(line.split()[1]) for line in said[: said.index(begun[1])] if "done" in line)
    assert begun == ["begins behind step 0", f"begins behind step {last}"] and last >= 2
    arrived = sorted(path.name for path in (users.directory / "checkpoints").iterdir())
    assert arrived == [f"step-{n:04d}" for n in (*range(1, 6), 99)]
    # Slurm may have killed the first try, after KillWait, before it had taken its allocation away.
    users.run("forebay", "gather")
    assert users.leftovers() == [], (users.status("n1"), users.stderr_text())
