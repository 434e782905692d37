"""Pools in the nodes' own storage with an engine: the nodes of a job share one namespace, which ends with the job."""

import hashlib
import pathlib
import re
import signal
import time

import pytest

from support.bed_processes import send
from support.site_cluster import DAEMON, MIB, TOGETHER, chown
from support.site_exchange import exchange_over_four_nodes
from support.slurm_cluster import NODES, command_of, descendants
from support.strace import few

IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/input"
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
ON_NODES = ("-N4", "--ntasks-per-node=1")
GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "site-slurm.md"
#: Each node writes its name into a file of its own; then the job waits.
WRITES = """set -e
mkdir -p $DW_JOB_STRIPED/out
srun bash -c 'hostname > $DW_JOB_STRIPED/out/$(hostname)'
touch written; until [ -e end ]; do sleep 0.1; done
"""


@pytest.fixture
def batch(slurm_site, users):
    """Jobs of a user; whatever they did, their nodes are empty at the end."""
    slurm_site.cgroup(NODES[-1])
    (users.directory / "input").mkdir()
    (users.directory / "input" / "deck").write_text("input\n")
    users.results.mkdir()
    for path in (users.directory / "input", users.results):
        chown(path, users.user)
    yield users
    users.end()
    assert slurm_site.on_nodes("together") == [] and slurm_site.on_nodes("copies") == []
    left = slurm_site.run(["ls", "/mnt/disk/pool"], node=NODES[-1]).stdout
    assert left == "", left
    assert engine_processes(slurm_site) == []


def engine_processes(cluster, node=None, word=None):
    """Processes of engines, of one node or of all, perhaps those of one program."""
    first = cluster.leader(node) if node else cluster.holder.pid
    words = [(pid, " ".join(command_of(pid))) for pid in descendants(first)]
    programs = ("__engine", "__node", "__mount", "ceph-")
    return [pid for pid, text in words if any(one in text for one in programs) and (word or "") in text]


def kills(pids):
    assert pids
    for pid in pids:
        send(pid, signal.SIGKILL)


def ends(batch):
    (batch.directory / "end").touch()


def delivered(batch):
    """The results by name; of the large file its checksum."""
    found = {path.name: path.read_bytes() for path in batch.results.iterdir()}
    return {
        name: hashlib.sha256(content).hexdigest() if name == "large" else content.decode()
        for name, content in found.items()
    }


#: And one writes a file that is on all servers; the node that wrote a file may have it in its cache.
LARGE = (
    "srun -N1 -n1 --nodelist=n3 bash -c "
    "'head -c 32M /dev/urandom | tee $DW_JOB_STRIPED/out/large | sha256sum | cut -d\" \" -f1 > sum'"
)
WRITES_LARGE = WRITES.replace("set -e\n", "").replace("touch written", f"{LARGE}\ntouch written")
ALL = {node: f"{node}\n" for node in NODES}


def test_nodes_share_one_namespace_that_is_staged_in_and_out(slurm_site, batch):
    body = """set -e
srun bash -c 'stat -f -c %T $DW_JOB_STRIPED; cat $DW_JOB_STRIPED/input/deck'
mkdir $DW_JOB_STRIPED/out
srun bash -c 'hostname > $DW_JOB_STRIPED/out/$(hostname)'
srun bash -c 'ls $DW_JOB_STRIPED/out | wc -l'
srun bash -c 'echo $(hostname) >> $DW_JOB_STRIPED/out/all'
touch written; until [ -e end ]; do sleep 0.1; done
"""
    batch.script(body, TOGETHER, IN, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    shares = slurm_site.allocation(job)["shares"]
    assert [one["capacity_bytes"] for one in shares] == [64 * MIB] * 4
    ends(batch)
    batch.wait_until_freed(job)
    assert sorted(batch.stdout_text().splitlines()) == ["4"] * 4 + ["fuseblk"] * 4 + ["input"] * 4
    found = delivered(batch)
    assert sorted(found.pop("all").splitlines()) == list(NODES) and found == ALL


def test_mpi_program_on_four_nodes_shares_the_namespace(slurm_site, batch, build):
    exchange_over_four_nodes(batch, build, TOGETHER, OUT)


def test_two_jobs_on_one_node_have_their_own_namespaces(slurm_site, batch):
    body = "hostname > $DW_JOB_STRIPED/$SLURM_JOB_ID; ls $DW_JOB_STRIPED; touch written-$SLURM_JOB_ID\n"
    batch.script(f"{body}until [ -e end ]; do sleep 0.1; done", TOGETHER.replace("256MiB", "32MiB"))
    jobs = [batch.submit("--nodelist=n3", "--output=said-%j") for _ in range(2)]
    for job in jobs:
        batch.wait_for_file(f"written-{job}")
    ends(batch)
    batch.wait_until_freed(*jobs)
    assert [(batch.directory / f"said-{job}").read_text() for job in jobs] == [f"{job}\n" for job in jobs]


def test_daemons_that_end_leave_the_engine_to_the_job(slurm_site, batch):
    batch.script(f"{WRITES}srun bash -c 'cat $DW_JOB_STRIPED/out/n[1-4] | wc -l'", TOGETHER, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    before = engine_processes(slurm_site)
    for node in NODES:
        slurm_site.kill_noded(node)
    slurm_site.wait_until_up_again(*NODES)
    assert engine_processes(slurm_site) == before
    ends(batch)
    batch.wait_until_freed(job)
    assert batch.stdout_text().split() == ["4"] * 4 and delivered(batch) == ALL


@pytest.mark.parametrize("word", ["__engine hold", "__engine agent", "__engine", "__mount"])
def test_results_come_home_after_processes_of_the_engine_were_killed(slurm_site, batch, word):
    batch.script(WRITES, TOGETHER, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    kills(engine_processes(slurm_site, word=word))
    ends(batch)
    batch.wait_until_freed(job)
    assert delivered(batch) == ALL


def test_engine_whose_first_process_is_killed_at_the_start_is_started_again(slurm_site, batch):
    batch.script("ls $DW_JOB_STRIPED/input", TOGETHER, IN)
    job = batch.submit(*ON_NODES)
    slurm_site.wait(lambda: engine_processes(slurm_site, word="__engine hold"), batch.log)
    kills(engine_processes(slurm_site, word="__engine hold"))
    batch.wait(job)
    assert batch.stdout_text() == "deck\n", batch.state_of(job)


def test_write_beyond_the_capacity_fails_and_leaves_room_after_a_removal(slurm_site, batch):
    body = """cd $DW_JOB_STRIPED
dd if=/dev/zero of=big bs=1M count=400 2>&1 | grep -o 'Disk quota exceeded'
rm big; for second in {1..60}; do dd if=/dev/zero of=small bs=1M count=64 2>/dev/null && break; sleep 1; done
stat -c %s small
"""
    batch.script(body, TOGETHER)
    job = batch.submit(*ON_NODES)
    batch.wait(job)
    assert batch.stdout_text().splitlines() == ["Disk quota exceeded", str(64 * MIB)], batch.state_of(job)


def test_pool_that_is_not_mounted_on_a_node_does_not_stop_the_engines_of_another(slurm_site, batch):
    batch.script(WRITES, TOGETHER, OUT)
    pool = slurm_site.top / "hosts/n3/nvme/copies"
    away = pool.with_name("copies.away")
    pool.rename(away)
    try:
        job = batch.submit(*ON_NODES)
        batch.wait_for_file("written")
    finally:
        away.rename(pool)
    ends(batch)
    batch.wait_until_freed(job)
    assert delivered(batch) == ALL


def test_cancelled_job_leaves_no_process_and_no_mount(slurm_site, batch):
    batch.script(WRITES, TOGETHER, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    batch.run("scancel", "--hurry", job)
    batch.wait_until_freed(job)
    for node in NODES:
        mounts = slurm_site.run(["cat", "/proc/self/mountinfo"], node=node).stdout
        assert "/mnt/nvme/together/" not in mounts


@pytest.mark.parametrize("is_watched", few("by another daemon", "again", "from the start", kept=2))
def test_lost_server_of_a_job_without_copies_fails_its_files_and_names_them(slurm_site, batch, is_watched):
    batch.script(f"{WRITES_LARGE}cat $DW_JOB_STRIPED/out/large > /dev/null || touch failed", TOGETHER, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    if is_watched != "from the start":
        name = slurm_site.allocation(job)["directory"].rsplit("/", 1)[-1]
        log = slurm_site.top / "hosts/n1/nvme/together" / name / "engine.log"
        if is_watched == "by another daemon":
            slurm_site.kill_noded("n1")
        kills(engine_processes(slurm_site, word="__engine hold"))
        slurm_site.wait(lambda: "the engine is watched again" in log.read_text(), log.read_text)
    kills(engine_processes(slurm_site, "n4", "ceph-osd"))
    ends(batch)
    batch.wait_for_file("failed")
    reason = batch.waits_for(job, "dws data out")
    assert "out/large: Input/output error" in reason and "on n1" in reason, reason
    # What other servers have arrives.
    rest = delivered(batch)
    assert "large" not in rest and rest.items() <= ALL.items()
    batch.run("scancel", "--hurry", job)
    batch.wait_until_freed(job)


def test_server_that_is_started_again_on_its_disk_delivers_and_says_what_may_be_missing(slurm_site, batch):
    synced = LARGE + "\nsync $DW_JOB_STRIPED/out/large"
    reads = "cat $DW_JOB_STRIPED/out/large > /dev/null || touch failed"
    batch.script(f"{WRITES_LARGE.replace(LARGE, synced)}{reads}", TOGETHER.replace("together", "disks"), OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    kills(engine_processes(slurm_site, "n4", "ceph-osd"))
    ends(batch)
    batch.wait_for_file("failed")
    reason = batch.waits_for(job, "dws data out")
    assert "5 files are at their destinations, but may lack what no program had synced" in reason, reason
    assert "n4.storage ended" in reason, reason
    found = delivered(batch)
    assert found.pop("large") == (batch.directory / "sum").read_text().strip() and found == ALL
    batch.run("scancel", "--hurry", job)
    batch.wait_until_freed(job)


def test_files_on_a_node_that_dies_are_named_and_its_part_is_freed_when_it_is_back(slurm_site, batch):
    batch.script(WRITES_LARGE, TOGETHER, OUT)
    job = batch.submit(*ON_NODES, "--no-requeue")
    batch.wait_for_file("written")
    try:
        slurm_site.kill_node("n4")
        slurm_site.run(["scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=died"])
        reason = batch.waits_for(job, "dws data out")
        assert "out/large: Input/output error" in reason, reason
    finally:
        slurm_site.start_node("n4")
    batch.run("scancel", "--hurry", job)
    batch.wait_until_freed(job)


def test_node_that_dies_takes_nothing_with_it_where_the_pool_keeps_two_copies(slurm_site, batch):
    copies = TOGETHER.replace("together", "copies").replace("256MiB", "128MiB")
    reads = "cat $DW_JOB_STRIPED/out/large | wc -c; echo late > $DW_JOB_STRIPED/out/late"
    batch.script(f"{WRITES_LARGE}{reads}", copies, OUT)
    job = batch.submit(*ON_NODES, "--no-requeue", "--no-kill")
    batch.wait_for_file("written")
    assert [one["capacity_bytes"] for one in slurm_site.allocation(job)["shares"]] == [64 * MIB] * 4
    try:
        slurm_site.kill_node("n4")
        slurm_site.run(["scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=died"])
        ends(batch)
        rest = ALL | {"late": "late\n"}
        arrived = lambda: len(batch.arrived()) == len(rest) + 1  # noqa: E731
        slurm_site.wait(arrived, lambda: batch.state_of(job))
    finally:
        slurm_site.start_node("n4")
    batch.wait_until_freed(job)
    found = delivered(batch)
    assert found.pop("large") == (batch.directory / "sum").read_text().strip() and found == rest
    assert batch.stdout_text().splitlines()[-1] == str(32 * MIB)


def test_first_node_that_dies_delivers_from_the_second_copy_when_it_is_back(slurm_site, batch):
    batch.script(WRITES_LARGE, TOGETHER.replace("together", "copies").replace("256MiB", "128MiB"), OUT)
    job = batch.submit(*ON_NODES, "--no-requeue")
    batch.wait_for_file("written")
    try:
        slurm_site.kill_node("n1")
        slurm_site.run(["scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=died"])
        assert "kept in" in batch.waits_for(job, "forebay-noded does not answer on n1")
    finally:
        slurm_site.start_node("n1")
    slurm_site.control("deliver", job)
    found = delivered(batch)
    assert found.pop("large") == (batch.directory / "sum").read_text().strip() and found == ALL
    batch.run("scancel", "--hurry", job)
    batch.wait_until_freed(job)


@pytest.mark.soak
def test_staging_that_cannot_reach_a_node_leaves_the_servers_running(slurm_site, batch):
    batch.script(WRITES_LARGE, TOGETHER, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    servers = engine_processes(slurm_site, word="ceph-osd")
    slurm_site.kill_noded("n3", hold=True)
    try:
        kills(engine_processes(slurm_site, word="__engine hold"))
        kills(engine_processes(slurm_site, "n1", "__mount"))
        ends(batch)
        assert "kept in" in batch.waits_for(job, "dws data out")
        time.sleep(90)  # agents that clean up after `forebay run` wait for 60 s
        assert engine_processes(slurm_site, word="ceph-osd") == servers
    finally:
        slurm_site.release("n3")
    slurm_site.wait_until_up_again("n3")
    slurm_site.control("deliver", job)
    assert "large" in batch.arrived()
    batch.run("scancel", "--hurry", job)
    batch.wait_until_freed(job)


def test_epilog_of_the_guide_spares_the_engine(slurm_site, batch):
    batch.script(WRITES, TOGETHER, OUT)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    before = engine_processes(slurm_site)
    (epilog,) = re.findall(r"^```bash\n(for process in .*?)```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    for node in NODES[1:]:
        slurm_site.run(["bash", "-c", epilog], node=node, check=False, SLURM_JOB_USER="nobody")
    assert before and engine_processes(slurm_site) == before
    # This ends the job's script.
    slurm_site.run(["bash", "-c", epilog], node="n1", check=False, SLURM_JOB_USER="nobody")
    batch.wait(job)
    batch.wait_until_freed(job)
    assert delivered(batch) == ALL


def test_peer_without_the_key_gets_no_agent(slurm_site, batch):
    batch.script(WRITES, TOGETHER)
    job = batch.submit(*ON_NODES)
    batch.wait_for_file("written")
    name = slurm_site.allocation(job)["directory"].rsplit("/", 1)[-1]
    script = f"""import socket
for name in ["{name} n3 x", "{name} n1 x", "{name}", "0.0 n3 x", ".. n3 x", ""]:
    peer = socket.create_connection(("n3", 7077), 10)
    peer.sendall(b"ENGINE " + name.encode() + b"\\n")
    text = peer.recv(1000)
    if text:
        peer.sendall(b"00" * 32 + b"\\n")
        assert peer.recv(100) == b""
    print(bool(text))
"""
    said = slurm_site.run(["python3", "-c", script], user=str(DAEMON), node="n1").stdout.split()
    assert said == ["True"] + ["False"] * 5
    agents = [command_of(pid) for pid in engine_processes(slurm_site, word="__engine agent")]
    assert len(agents) == len(NODES)
    ends(batch)
    batch.wait_until_freed(job)
