"""Pools in the nodes' own storage: each node of a job has its own directory, and delivers its own results."""

import json
import os

import pytest

from support.schemas import complaints
from support.site_cluster import DAEMON, DW, MIB, PRIVATE, chown
from support.site_staging import parts
from support.strace import few
from support.waiting import wait_until
from support.why import need_python, why

IN = "#DW stage_in type=file source=%d/input destination=$DW_JOB_PRIVATE/input"
OUT = "#DW stage_out type=directory source=$DW_JOB_PRIVATE/out destination=%d/results"
SLOW = PRIVATE.replace("local", "localslow").replace("64MiB", "16MiB")
WRITES = "srun bash -c 'mkdir $DW_JOB_PRIVATE/out; hostname > $DW_JOB_PRIVATE/out/name'"


def prepare(batch):
    (batch.directory / "input").write_text("input\n")
    batch.results.mkdir()
    chown(batch.results, batch.user)


def names(batch):
    """What each node delivered."""
    return {path.parent.name: path.read_text().strip() for path in batch.results.glob("*/name")}


def shares(batch, job):
    return [one["node"].split(":")[0] for one in batch.cluster.allocation(job)["shares"]]


def frees(batch, *jobs):
    batch.wait_until_freed(*jobs)
    assert batch.cluster.on_nodes() == [] and batch.cluster.on_nodes("slow") == []


def completes(batch, job):
    """A stage-out that fails keeps the job in its state; its reason then says why."""
    said = lambda: (batch.show_job(job)["JobState"], batch.reason(job))  # noqa: E731
    batch.cluster.wait(lambda: said()[0] in ("COMPLETED", "FAILED") or "dws data out" in said()[1], said)
    assert said()[0] == "COMPLETED", (said(), batch.log())


def test_each_node_has_its_own_directory_and_delivers_its_own_results(slurm_site, users):
    (users.directory / "input").write_text("input\n")
    body = """set -e
test "$DW_JOB_PRIVATE" != "${DW_JOB_PRIVATE%/}"
srun bash -c 'cd $DW_JOB_PRIVATE; grep -q input input; mkdir out; hostname > out/name; stat -c "%u %a" ..'
touch running; until [ -e end ]; do sleep 0.1; done
"""
    single = "#DW stage_out type=file source=$DW_JOB_PRIVATE/out/name destination=%d/single"
    users.script(body, PRIVATE, IN, OUT, single)
    job = users.submit("-N4", "--ntasks-per-node=1")
    users.wait_for_file("running")
    allocation = slurm_site.allocation(job)
    assert complaints("control-status", slurm_site.status()) == []
    assert [one["capacity_bytes"] for one in allocation["shares"]] == [16 * MIB] * 4
    assert slurm_site.on_nodes() == [f"n{number}/{allocation['directory'].split('/')[-1]}" for number in range(1, 5)]
    (users.directory / "end").touch()
    completes(users, job)
    assert users.stdout_text().splitlines() == [f"{users.user} 700"] * 4
    frees(users, job)
    assert names(users) == {node: node for node in ("n1", "n2", "n3", "n4")}
    singles = [path.read_text().strip() for path in sorted((users.directory / "single").iterdir())]
    assert singles == ["n1", "n2", "n3", "n4"]


def test_removal_where_the_storage_of_the_node_is_not_mounted_is_no_success(slurm_site, users):
    users.script("touch running; sleep 60", PRIVATE)
    job = users.submit("--nodelist=n2")
    users.wait_for_file("running")
    pool = slurm_site.top / "hosts/n2/nvme/pool"
    away = pool.with_name("pool.away")
    pool.rename(away)
    pool.mkdir()
    try:
        users.run("scancel", job)
        problem = "n2: /mnt/nvme/pool has no .forebay-pool: it is not the directory of the pool"
        slurm_site.wait(lambda: problem in (slurm_site.allocation(job)["problem"] or ""), users.log)
        assert shares(users, job) == ["n2"]
    finally:
        pool.rmdir()
        away.rename(pool)
    frees(users, job)


def test_start_that_one_node_refused_leaves_nothing_on_a_node_that_lost_its_storage_since(slurm_site, users):
    users.script("true", PRIVATE)
    script = users.directory / "job.sh"
    nodes = users.directory / "nodes"
    nodes.write_text("n1\nn2\n")
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "local:64MiB")
    of_job = ("--token", "900010", "--job", script)
    pool, other = (slurm_site.top / "hosts" / node / "nvme" / "pool" for node in ("n1", "n2"))
    away = pool.with_name("pool.away")
    slurm_site.call("--function", "setup", *of_user, *of_job, check=True)
    slurm_site.call("--function", "data_in", *of_job, check=True)
    other.chmod(0o777)
    try:
        started = slurm_site.call("--function", "pre_run", "--nodehostnamefile", nodes, *of_job)
    finally:
        other.chmod(0o755)
    assert started.returncode == 1 and "n2: the pool local: /mnt/nvme/pool must belong to root" in started.stderr
    assert [one.split("/")[0] for one in slurm_site.on_nodes()] == ["n1"]
    pool.rename(away)
    pool.mkdir()
    try:
        removed = slurm_site.call("--function", "teardown", "--hurry", *of_job)
    finally:
        pool.rmdir()
        away.rename(pool)
    assert removed.returncode == 1 and "n1: /mnt/nvme/pool has no .forebay-pool" in removed.stderr
    assert shares(users, "900010") == ["n1"]
    slurm_site.call("--function", "teardown", "--hurry", *of_job, check=True)
    assert slurm_site.on_nodes() == []


@pytest.mark.soak
def test_node_that_is_down_at_stage_out_is_named_and_delivers_later(slurm_site, users):
    need_python()
    prepare(users)
    users.script(f"{WRITES}; touch written; until [ -e end ]; do sleep 0.1; done", PRIVATE, OUT)
    job = users.submit("--nodelist=n1,n2", "--ntasks-per-node=1")
    users.wait_for_file("written")
    slurm_site.kill_noded("n2", hold=True)
    try:
        (users.directory / "end").touch()
        told = why(users, job, "waits for node")
        assert "waits for the node n2, which does not answer: the data are staged out there" in told["paragraph"]
        reason = users.waits_for(job, "forebay-noded does not answer on n2")
        kept = why(users, job, "kept")
        assert "forebay-noded does not answer on n2" in kept["paragraph"] and "on n2" in kept["next_step"]
        samples = slurm_site.control("metrics").stdout.splitlines()
        for node, is_up, undelivered in (("n1", 1, 0), ("n2", 0, 1)):
            assert f'forebay_node_up{{node="{node}"}} {is_up}' in samples
            labels = f'{{node="{node}",pool="local"}}'
            assert f"forebay_node_undelivered{labels} {undelivered}" in samples
            assert f"forebay_node_allocated_bytes{labels} {32 * MIB}" in samples
            assert f"forebay_node_capacity_bytes{labels} {64 * MIB}" in samples
        assert "/private/ on n2: copy it from there, or ask the site for forebay control deliver" in reason
        assert names(users) == {"n1": "n1"}
        assert "does not answer on n2" in slurm_site.control("deliver", job, check=False).stderr
    finally:
        slurm_site.release("n2")
    slurm_site.wait_until_up_again("n2")
    assert f"the results of job {job} are at their destinations" in slurm_site.control("deliver", job).stderr
    assert names(users) == {"n1": "n1", "n2": "n2"}
    users.run("scancel", "--hurry", job)
    frees(users, job)


def test_node_that_is_down_at_teardown_is_named_and_freed_later(slurm_site, users):
    users.script("touch running; until [ -e end ]; do sleep 0.1; done", PRIVATE)
    job = users.submit("--nodelist=n1,n3")
    users.wait_for_file("running")
    slurm_site.kill_noded("n3", hold=True)
    try:
        (users.directory / "end").touch()
        problem = "forebay-noded does not answer on n3"
        slurm_site.wait(lambda: problem in (slurm_site.allocation(job)["problem"] or ""), users.log)
        known = slurm_site.allocation(job)
        assert (shares(users, job), known["capacity_bytes"]) == (["n3"], 32 * MIB)
        assert [path.split("/")[0] for path in slurm_site.on_nodes()] == ["n3"]
    finally:
        slurm_site.release("n3")
    frees(users, job)


def test_job_waits_until_its_node_has_room(slurm_site, users):
    """The pool has room for both jobs, but the node has not."""
    need_python()
    body = "touch %s; until [ -e end ]; do sleep 0.1; done"
    users.script(body % "first", PRIVATE)
    first = users.submit("--nodelist=n1", "-n1")
    users.wait_for_file("first")
    users.script("touch second", PRIVATE)
    second = users.submit("--nodelist=n1", "-n1")
    users.wait(second, "CONFIGURING", "RUNNING")
    told = why(users, second, "waits for space")["paragraph"]
    assert (
        f"starts when the node has room for its burst buffer: n1. The largest allocations there are {first} of" in told
    )
    assert shares(users, second) == [] and not (users.directory / "second").exists()
    (users.directory / "end").touch()
    for job in (first, second):
        assert users.wait(job) == "COMPLETED", users.log()
    frees(users, first, second)


def test_node_without_the_storage_is_named(users):
    users.script("true", SLOW)
    users.submit("--nodelist=n4")
    wanted = "the pool localslow has no storage on n4; choose nodes that have it, with --constraint or --nodelist"
    users.cluster.wait(lambda: wanted in users.log(), users.log)


def test_what_nodes_of_a_job_cannot_do_is_refused(slurm_site, users):
    stage = "#DW stage_in type=file source=%d/a destination=$DW_PERSISTENT_STRIPED_p/a"
    for directives, wanted in [
        ([PRIVATE, "#DW persistentdw name=p", stage], "line 4: a job with access_mode=private stages no persistent"),
        ([PRIVATE, IN.replace("PRIVATE", "STRIPED")], "is not in the burst buffer"),
    ]:
        users.script("true", *directives)
        said = users.run("sbatch", "job.sh", check=False)
        assert said.returncode != 0 and wanted in said.stderr, said
    words = ("--caller", "CLI", "--token", "p", "--user", users.user, "--capacity", "local:16MiB")
    refused = slurm_site.call("--function", "create_persistent", *words)
    assert refused.returncode == 1, refused
    assert "access_mode=striped is not possible in the pool local" in refused.stderr
    # Slurm chooses the pool, and only setup sees it.
    users.script("true", PRIVATE.replace(" pool=local", ""))
    users.waits_for(users.submit(), "access mode=private is not possible in the pool flash")


@pytest.fixture
def staged(users):
    """A job on n1 that takes some seconds to stage in and out the same file; and what the file holds."""
    content = os.urandom(12 * MIB)
    prepare(users)
    (users.directory / "input").write_bytes(content)
    users.script("true", SLOW, IN, OUT.replace("directory", "file").replace("/out", "/input"))
    return users, content


def in_stage(batch, direction):
    where = batch.cluster.top / "hosts/n1/nvme/slow" if direction == "in" else batch.results
    wait_until(lambda: parts(where), what=f"staging {direction}")


@pytest.mark.parametrize(
    "killed, direction",
    few(("daemon", "out"), ("process of the user", "in"), ("daemon", "in"), ("process of the user", "out"), kept=2),
)
def test_killed_staging_resumes_on_its_node(slurm_site, staged, killed, direction):
    batch, content = staged
    job = batch.submit("--nodelist=n1")
    in_stage(batch, direction)
    if killed == "daemon":
        slurm_site.kill_noded("n1")
    else:
        (work,) = slurm_site.processes("/proc/self/exe", "__site")
        os.kill(work, 9)
    completes(batch, job)
    frees(batch, job)
    assert (batch.results / "n1").read_bytes() == content and batch.arrived() == ["n1"]


def test_killed_controller_stages_out_after_its_restart(slurm_site, staged):
    batch, content = staged
    batch.script("true")
    held = batch.submit("--hold")
    copies = f"cat {batch.directory}/input {batch.directory}/input > $DW_JOB_PRIVATE/input"
    large = SLOW.replace("16MiB", "32MiB")
    batch.script(copies, large, OUT.replace("directory", "file").replace("/out", "/input"))
    job = batch.submit("--nodelist=n1")
    in_stage(batch, "out")
    slurm_site.wait_until_saved(held)
    slurm_site.kill_controller()
    completes(batch, job)
    frees(batch, job)
    assert (batch.results / "n1").read_bytes() == 2 * content


def test_killed_controller_starts_no_job_whose_nodes_still_stage(slurm_site, users):
    """Slurm saves its state within 5 s, so the stage takes longer."""
    content = os.urandom(60 * MIB)
    prepare(users)
    (users.directory / "input").write_bytes(content)
    sees = f"stat -c %s $DW_JOB_PRIVATE/input >> {users.directory}/sizes"
    sees += f"; until [ -e {users.directory}/end ]; do sleep 0.1; done"
    users.script(sees, SLOW.replace("16MiB", "64MiB"), IN, OUT.replace("directory", "file").replace("/out", "/input"))
    job = users.submit("--nodelist=n1")
    in_stage(users, "in")
    users.script("true")
    slurm_site.wait_until_saved(users.submit("--hold"))
    slurm_site.kill_controller()
    users.wait_for_file("sizes")
    slurm_site.wait(lambda: not slurm_site.processes("pre_run"), "the first call of pre_run does not end")
    assert slurm_site.allocation(job)["problem"] is None
    (users.directory / "end").touch()
    completes(users, job)
    frees(users, job)
    assert (users.directory / "sizes").read_text() == f"{len(content)}\n"
    assert (users.results / "n1").read_bytes() == content


@pytest.mark.parametrize("option", few("--requeue", "--no-requeue"))
def test_node_that_dies_is_named_and_delivers_when_it_is_back(slurm_site, users, option):
    """A job that Slurm would run again is held, and Slurm 22.05 does not run it again when its results are delivered."""
    need_python()
    prepare(users)
    users.script(f"{WRITES}; echo >> written; until [ -e end ]; do sleep 0.1; done", PRIVATE, OUT)
    job = users.submit("--nodelist=n1,n2", "--ntasks-per-node=1", option)
    users.wait_for_file("written")
    try:
        slurm_site.kill_node("n2")
        slurm_site.run(["scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=died"])
        users.waits_for(job, "forebay-noded does not answer on n2")
        kept = why(users, job, "held" if option == "--requeue" else "kept")
        assert "forebay-noded does not answer on n2" in kept["paragraph"] and "on n2" in kept["next_step"], kept
        assert names(users) == {"n1": "n1"}
    finally:
        slurm_site.start_node("n2")
    slurm_site.control("deliver", job)
    assert names(users) == {"n1": "n1", "n2": "n2"}
    if option == "--requeue":
        told = why(users, job, "being freed")
        assert "The results of its earlier run are delivered." in told["paragraph"], told
        assert f"scancel {job}, and submit the job again" in told["next_step"], told
        users.run("scancel", job)
    else:
        users.run("scancel", "--hurry", job)
    frees(users, job)
    assert (users.directory / "written").read_text() == "\n"


@pytest.mark.parametrize("direction", ["in", "out"])
def test_job_that_is_cancelled_while_a_node_stages_leaves_nothing(slurm_site, staged, direction):
    batch, _ = staged
    job = batch.submit("--nodelist=n1")
    in_stage(batch, direction)
    batch.run("scancel", "--hurry", job)
    frees(batch, job)
    assert parts(batch.results) == []


CALLS = ("pwrite64", "fdatasync", "sendto", "connect", "clone3")


def test_calls_killed_at_any_point_are_completed_by_the_next(slurm_site, users):
    users.script("true", PRIVATE)
    script, nodes = users.directory / "job.sh", users.directory / "nodes"
    nodes.write_text("n1\nn2\nn4\n")
    token = ("--token", "900200", "--job", script)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "local:64MiB")
    start = ("--function", "pre_run", *token, "--nodehostnamefile", nodes)
    teardown = ("--function", "teardown", *token)
    killed = 0
    for function in (start, teardown):
        for call in CALLS:
            for number in (1, 2, 4):
                slurm_site.call("--function", "setup", *token, *of_user, check=True)
                slurm_site.call("--function", "data_in", *token, check=True)
                if function == teardown:
                    slurm_site.call(*start, check=True)
                done = slurm_site.call(*function, kill_at=(call, number))
                assert done.returncode in (0, -9, 137), done
                killed += done.returncode != 0
                slurm_site.call(*function, check=True)
                if function == start:
                    assert shares(users, "900200") == ["n1", "n2", "n4"]
                    assert len(slurm_site.on_nodes()) == 3
                    slurm_site.call(*teardown, check=True)
                assert slurm_site.allocation("900200") is None
                assert slurm_site.on_nodes() == [], (function[1], call, number)
    assert killed >= 10, killed
    assert slurm_site.control("reap").stdout == "nothing is left behind\n"


def test_late_start_makes_no_directory_of_a_job_that_was_removed(slurm_site, users):
    """Slurm tears down with --hurry what fails to start, while the start may still run. The node never had a job."""
    mark = slurm_site.top / "hosts/n1/nvme/pool/.forebay-pool"
    if mark.exists():
        mark.rmdir()
    users.script("true", PRIVATE)
    script, nodes = users.directory / "job.sh", users.directory / "nodes"
    nodes.write_text("n1\n")
    token = ("--token", "900201", "--job", script)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "local:64MiB")
    slurm_site.call("--function", "setup", *token, *of_user, check=True)
    slurm_site.kill_noded("n1", hold=True)
    try:
        failed = slurm_site.call("--function", "pre_run", *token, "--nodehostnamefile", nodes)
        assert failed.returncode == 1 and "does not answer on n1" in failed.stderr, failed
    finally:
        slurm_site.release("n1")
    slurm_site.call("--function", "teardown", *token, "--hurry", check=True)
    late = slurm_site.call("--function", "pre_run", *token, "--nodehostnamefile", nodes)
    assert late.returncode == 1 and "has no allocation here" in late.stderr, late
    assert slurm_site.on_nodes() == []


@pytest.mark.parametrize(
    "trick",
    [
        "ln -s {secret}/file $DW_JOB_PRIVATE/out",
        "cd $DW_JOB_PRIVATE/..; rmdir private; ln -s {secret} private; true",
        "cd $DW_JOB_PRIVATE/..; rmdir private; mkfifo private; true",
        "cd $DW_JOB_PRIVATE; mkfifo out ../stage-out.journal; true",
        "cd $DW_JOB_PRIVATE; mkdir out; mkfifo out/a; ln -s {secret}/file out/b; ln -s /dev/zero out/c",
    ],
)
def test_links_and_fifos_at_the_directory_of_a_job_lead_nowhere_and_hold_up_nobody(slurm_site, users, trick):
    secret = slurm_site.shared / "of-another-on-nodes"
    secret.mkdir(exist_ok=True)
    (secret / "file").write_text("secret")
    secret.chmod(0o700)
    chown(secret, DAEMON)
    prepare(users)
    users.script(
        trick.format(secret=secret), PRIVATE, OUT, OUT.replace("/out", "/file").replace("results", "results/f")
    )
    job = users.submit("--nodelist=n2")
    users.cluster.wait(
        lambda: users.show_job(job)["JobState"] in ("COMPLETED", "FAILED") or "dws data out" in users.reason(job),
        lambda: (users.show_job(job), users.log()),
    )
    users.run("scancel", "--hurry", job)
    frees(users, job)
    assert not any(
        "secret" in path.read_text() for path in users.results.rglob("*") if path.is_file() and not path.is_symlink()
    )
    assert (secret / "file").read_text() == "secret"


def test_reap_names_orphans_of_nodes_and_directories_that_are_gone(slurm_site, users):
    orphan = slurm_site.top / "hosts/n2/nvme/pool/77.1"
    (orphan / "private").mkdir(parents=True)
    chown(orphan, users.user)
    users.script("touch running; sleep 60", PRIVATE)
    job = users.submit("--nodelist=n1,n2")
    users.wait_for_file("running")
    directory = slurm_site.allocation(job)["directory"].split("/")[-1]
    lost = slurm_site.top / "hosts/n1/nvme/pool" / directory
    lost.rename(slurm_site.top / "hosts/n1/nvme/lost")
    try:
        said = slurm_site.control("reap").stdout
        assert "belongs to no allocation: /mnt/nvme/pool/77.1 of nobody on n2" in said
        assert f"the directory of {job} on n1 is gone" in said and f"{job} on n2" not in said
    finally:
        (slurm_site.top / "hosts/n1/nvme/lost").rename(lost)
    found = json.loads(slurm_site.control("reap", "--discard", "--json").stdout)
    assert complaints("control-reap", found) == [] and [one["is_removed"] for one in found["orphans"]] == [True]
    assert slurm_site.on_nodes() == [f"n1/{directory}", f"n2/{directory}"]


def test_tables_of_dwstat_show_the_nodes(slurm_site, users):
    users.script("touch running; sleep 60", PRIVATE)
    job = users.submit("--nodelist=n1,n2")
    users.wait_for_file("running")
    fragments = slurm_site.run(["scontrol", "show", "bbstat", "fragments"]).stdout.splitlines()[1:]
    assert [line.split()[3] + " " + line.split()[-1] for line in fragments] == ["32MiB n1", "32MiB n2"], fragments
    assert "private" in slurm_site.run(["scontrol", "show", "bbstat", "configurations"]).stdout
    users.run("scancel", job)


def test_jobs_of_both_kinds_run_at_the_same_time(slurm_site, users):
    users.script("hostname > $DW_JOB_STRIPED/a", DW)
    shared = users.submit("-n1")
    users.script("hostname > $DW_JOB_PRIVATE/a", PRIVATE)
    private = users.submit("-n1")
    assert [users.wait(job) for job in (shared, private)] == ["COMPLETED"] * 2, users.log()
    frees(users, shared, private)
