"""Daemons and calls are killed in the middle of their work: it is completed, once."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal

import pytest

from support.schemas import complaints
from support.site_cluster import DW, MIB, SLOW, chown
from support.site_staging import IN, OUT, SIZE, arrives, in_stage, parts, prepare
from support.slurm_cluster import descendants
from support.strace import few
from support.why import need_python, why

KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # of the program itself, or as the program that started it says it


@pytest.fixture
def staged(users):
    """A job that takes some seconds to stage in and out the same file; and what the file holds."""
    content = prepare(users, SIZE)
    users.script("true", SLOW, IN, OUT)
    return users, content


@pytest.mark.parametrize("direction", few("in", "out"))
def test_killed_noded_resumes(slurm_site, staged, direction):
    batch, content = staged
    job = batch.submit()
    in_stage(batch, direction)
    slurm_site.kill_noded("n1")
    arrives(batch, job, content)


@pytest.mark.parametrize("direction", few("out", "in"))
def test_killed_process_of_the_user_is_started_again(slurm_site, staged, direction):
    """As an epilog does that ends all processes of a user."""
    batch, content = staged
    job = batch.submit()
    in_stage(batch, direction)
    (work,) = slurm_site.processes("/proc/self/exe", "__site")
    assert os.stat(f"/proc/{work}").st_uid == batch.user
    os.kill(work, signal.SIGKILL)
    arrives(batch, job, content)


@pytest.mark.parametrize("direction", few("out", "in"))
def test_killed_controller_continues_after_its_restart(slurm_site, users, direction):
    """Slurm saves its state within 5 s, so the stage takes longer."""
    content = prepare(users, 44 * MIB if direction == "in" else 28 * MIB)
    users.script("true")
    held = users.submit("--hold")
    stage_in = [IN] if direction == "in" else []
    users.script(f"cp -n {users.directory}/big $DW_JOB_STRIPED/", SLOW.replace("16MiB", "48MiB"), *stage_in, OUT)
    job = users.submit()
    in_stage(users, direction)
    slurm_site.wait_until_saved(held)
    slurm_site.kill_controller()
    if direction == "in":
        # Slurm removes an allocation that it finds half full after a restart, and makes it again a minute later.
        slurm_site.wait(lambda: f"teardown {job} --hurry: ok" in users.log(), users.log)
        users.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
    arrives(users, job, content)
    assert users.log().count(f"setup {job}: ok") == (2 if direction == "in" else 1)


def test_allocation_of_a_job_that_slurm_lost_is_removed(slurm_site, users):
    prepare(users, SIZE)
    users.script("true", SLOW, IN)
    job = users.submit()
    in_stage(users, "in")
    slurm_site.kill_controller(hold=True)
    for saved in (slurm_site.top / "state").glob("job_state*"):
        saved.unlink()
    slurm_site.release("controller")
    users.wait_until_freed(job)
    assert slurm_site.directories("slow") == []
    users.jobs.clear()
    slurm_site.wait_until_idle()


def test_second_call_attaches_to_the_work_of_a_killed_one(slurm_site, users):
    (users.directory / "big").write_bytes(bytes(28 * MIB))
    users.script("true", SLOW.replace("16MiB", "32MiB"), IN)
    script = str(users.directory / "job.sh")
    text = users.directory.joinpath("job.sh").read_text().replace("%d", str(users.directory))
    users.directory.joinpath("job.sh").write_text(text)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "slow:32MiB")
    token = "900001"
    slurm_site.call("--function", "setup", "--token", token, *of_user, "--job", script, check=True)
    call = ("--function", "data_in", "--token", token, "--job", script)
    try:
        for _ in range(2):
            killed = slurm_site.call(*call, timeout_s=1)
            assert killed.returncode in KILLED, killed
        (work,) = slurm_site.processes("/proc/self/exe", "__site")
        attached = slurm_site.call(*call)
        assert attached.returncode == 0, attached
        assert not os.path.exists(f"/proc/{work}"), "another process did the work"
        assert slurm_site.allocation(token)["phase"] == "staged-in"
    finally:
        slurm_site.call("--function", "teardown", "--token", token, "--job", script, "--hurry", check=True)
    assert slurm_site.allocation(token) is None and slurm_site.directories("slow") == []


def test_staging_goes_on_elsewhere_when_its_node_is_taken_out_of_the_pool(slurm_site, users):
    content = prepare(users, 40 * MIB)
    script = users.script_for_calls(SLOW.replace("16MiB", "48MiB"), IN)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "slow:48MiB")
    configuration = slurm_site.top / "site.toml"
    before = configuration.read_text()

    def write(text):
        """At once: calls of Slurm read it meanwhile."""
        new = configuration.with_suffix(".new")
        new.write_text(text)
        new.replace(configuration)

    def call(function, *words):
        words = ("--function", function, "--token", "900022", "--job", script, *words)
        return slurm_site.call(*words, check=True)

    call("setup", *of_user)
    began = slurm_site.start_call("--function", "data_in", "--token", "900022", "--job", str(script))
    try:
        in_stage(users, "in")
        slow, path, rest = before.partition(f'path = "{slurm_site.top}/flash/slow"')
        write(slow + path + rest.replace('["n1"]', '["n2"]', 1))
        assert slurm_site.allocation("900022")["node"].startswith("n1:")
        slurm_site.kill_noded("n1", hold=True)
        began.kill()
        slurm_site.wait(lambda: not slurm_site.processes("/proc/self/exe", "__site"), "its process goes on")
        call("data_in")
        assert (users.directory_of("900022") / "big").read_bytes() == content
    finally:
        began.kill()
        began.wait()
        call("teardown", "--hurry")
        slurm_site.release("n1")
        write(before)
        slurm_site.wait_until_up_again("n1")
    # On a slow machine the input may have been complete, and the removal alone is left.
    assert "900022: n2:7077 takes over from n1, which is no node of the pool slow any more" in users.log()
    assert slurm_site.allocation("900022") is None and slurm_site.directories("slow") == []


def test_node_that_is_taken_out_of_the_pool_keeps_its_allocations_while_it_answers(slurm_site, users):
    prepare(users, MIB)
    script = users.script_for_calls(SLOW, IN)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "slow:16MiB")
    call = ("--token", "900023", "--job", script)
    slurm_site.call("--function", "setup", *call, *of_user, check=True)
    slow, path, rest = (slurm_site.top / "site.toml").read_text().partition(f'path = "{slurm_site.top}/flash/slow"')
    other = slurm_site.top / "site-of-other-nodes.toml"
    other.write_text(slow + path + rest.replace('["n1"]', '["n2"]', 1))
    staging = slurm_site.start_call("--function", "data_in", *map(str, call), site=other)
    assert staging.wait(timeout=300) == 0
    known = slurm_site.allocation("900023")
    slurm_site.call("--function", "teardown", *call, "--hurry", check=True)
    assert (known["node"], known["phase"]) == ("n1:7077", "staged-in")


def test_results_that_another_call_removes_are_not_said_to_be_kept(slurm_site, users):
    content = prepare(users, 28 * MIB)
    script = users.script_for_calls(SLOW.replace("16MiB", "32MiB"), OUT)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "slow:32MiB")

    def call(function, *words):
        return slurm_site.call("--function", function, "--token", "900005", "--job", script, *words)

    for done in (call("setup", *of_user), call("data_in"), call("pre_run")):
        assert done.returncode == 0, done
    result = users.directory_of("900005") / "big"
    result.write_bytes(content)
    chown(result, users.user)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        staging = threads.submit(call, "data_out")
        in_stage(users, "out")
        removed = call("teardown", "--hurry")
    assert removed.returncode == 0, removed
    said = staging.result()
    assert said.returncode == 1 and "kept in" not in said.stderr, said
    assert slurm_site.allocation("900005") is None and slurm_site.directories("slow") == []


@pytest.mark.soak
def test_node_without_daemon_is_named_and_the_job_runs_when_it_is_back(slurm_site, users):
    need_python()
    users.script("hostname > $DW_JOB_STRIPED/../../name 2>&1; hostname", DW)
    slurm_site.kill_noded("n4", hold=True)
    try:
        job = users.submit("--nodelist=n4")
        slurm_site.wait(lambda: "forebay-noded does not answer on n4" in users.log(), users.log)
    finally:
        slurm_site.release("n4")
    # Slurm starts the job again only when it is released, which its user may do.
    assert why(users, job, "held")["next_step"].endswith(f"then scontrol release {job}")
    assert "does not answer on n4" in users.run("scontrol", "show", "job", job).stdout.replace("_", " ")
    users.run("scontrol", "release", job)
    slurm_site.wait(lambda: users.show_job(job)["JobState"] == "COMPLETED", lambda: users.state_of(job))
    assert users.stdout_text() == "n4\n", users.state_of(job)


def test_job_starts_although_daemons_are_started_again_meanwhile(slurm_site, users):
    """Slurm does not repeat a set-up that failed, and holds jobs whose nodes failed some times."""
    users.script("hostname", DW)
    for function, nodes in (("setup", ("n1", "n2")), ("pre_run", ("n4",))):
        for node in nodes:
            slurm_site.kill_noded(node, hold=True)
        try:
            job = users.submit("--nodelist=n4")
            slurm_site.wait(lambda function=function: slurm_site.processes("--function", function), lambda: users.log())
            seen = slurm_site.processes("--function", function)
        finally:
            for node in nodes:
                slurm_site.release(node)
        assert seen and users.wait(job) == "COMPLETED", users.log()
        assert f"{function} {job}: error" not in users.log() and f"{function} {job}: ok" in users.log()
        slurm_site.wait_until_up_again(*nodes)


def test_daemon_that_ends_by_itself_is_seen_by_the_check_after_each_test(slurm_site):
    before = slurm_site.unexpected_ends()
    (daemon,) = slurm_site.daemons("n3")
    os.kill(daemon, signal.SIGTERM)
    wanted = [*before, f"n3 {128 + signal.SIGTERM}"]
    slurm_site.wait(lambda: slurm_site.unexpected_ends() == wanted, slurm_site.unexpected_ends)
    slurm_site.wait_until_up_again("n3")


@pytest.mark.parametrize("direction", ["in", "out"])
def test_cancelled_staging_leaves_no_partial_files(slurm_site, users, direction):
    """Also where it copies to a place that stays."""
    prepare(users, SIZE)
    if direction == "in":
        users.script("exit 0", "#BB create_persistent name=kept capacity=16MiB pool=slow")
        assert users.wait(users.submit()) == "COMPLETED"
        name = "$DW_PERSISTENT_STRIPED_kept"
        users.script("true", SLOW, "#DW persistentdw name=kept", IN.replace("$DW_JOB_STRIPED", name))
    else:
        users.script(f"cp {users.directory}/big $DW_JOB_STRIPED/", SLOW, OUT)
    job = users.submit()
    in_stage(users, direction)
    users.run("scancel", "--hurry", job)
    users.wait_until_freed(job)
    assert parts(users.results) == [] and parts(slurm_site.top / "flash" / "slow") == []
    if direction == "in":
        users.script("exit 0", "#BB destroy_persistent name=kept")
        users.submit()
        slurm_site.wait(lambda: slurm_site.allocation("kept") is None, users.log)
    assert slurm_site.directories("slow") == []


def setup_of(users, token, *directives):
    """Writes the script of a job; returns the words of the call that Slurm's plugin makes for it."""
    script = users.script_for_calls(DW, *directives)
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "flash:16MiB")
    return [*map(str, ("--function", "setup", "--token", token, *of_user, "--job", script))]


def teardown_of(users, token):
    return ["--function", "teardown", "--token", token, "--job", str(users.directory / "job.sh")]


def test_setup_that_begins_after_its_job_was_cancelled_is_refused(slurm_site, users):
    """Slurm has asked for the removal before, and does not ask again."""
    users.script("true", DW)
    job = users.submit("--hold")
    users.run("scancel", job)
    done = slurm_site.call(*setup_of(users, job))
    assert done.returncode == 1
    assert f"job {job} is over (CANCELLED): it gets no burst buffer; submit it again" in done.stdout + done.stderr
    assert slurm_site.allocation(job) is None and slurm_site.directories() == []


def test_teardown_waits_for_the_setup_that_runs(slurm_site, users):
    """Slurm asks for both at once when a job is cancelled in that moment."""
    token = "900003"
    slow = users.directory / "slow"
    slow.mkdir()
    slow.chmod(0o777)  # SlurmUser writes there
    (slow / "scontrol").write_text(
        f"#!/bin/sh\ntouch {slow}/asked\nuntil [ -e {slow}/go ]; do sleep 0.02; done\nexit 1\n"
    )
    (slow / "scontrol").chmod(0o755)
    calls = [slurm_site.start_call(*setup_of(users, token), path=f"{slow}:{os.defpath}")]
    try:
        slurm_site.wait((slow / "asked").exists, users.log)
        calls.append(slurm_site.start_call(*teardown_of(users, token)))
        slurm_site.wait(lambda: calls[1].poll() is not None or has_slept(calls[1].pid, 20), users.log)
        (slow / "go").touch()
        assert [call.wait(timeout=60) for call in calls] == [0, 0]
        assert slurm_site.allocation(token) is None and slurm_site.directories() == []
    finally:
        (slow / "go").touch()
        for call in calls:
            call.wait()
        slurm_site.call(*teardown_of(users, token), "--hurry")


def has_slept(leader, times):
    """Whether one of these processes has gone to sleep at least so many times."""
    for pid in descendants(leader):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)[1]) >= times:
                return True
    return False


CALLS = ("pwrite64", "fdatasync", "unlink", "sendto", "connect")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_calls_killed_at_any_point_are_completed_by_the_next(slurm_site, users):
    """Slurm repeats a call that was killed; what one began, the next one finds."""
    token = "900002"
    setup, teardown = setup_of(users, token), teardown_of(users, token)
    killed = 0
    for function in (setup, teardown):
        for call in CALLS:
            for number in (1, 2, 4):
                if function == teardown:
                    slurm_site.call(*setup, check=True)
                done = slurm_site.call(*function, kill_at=(call, number))
                assert done.returncode in (0, *KILLED), done
                killed += done.returncode in KILLED
                slurm_site.call(*function, check=True)
                known = slurm_site.allocation(token)
                assert (known["phase"] if known else None) == ("ready" if function == setup else None), (call, number)
                if function == setup:
                    slurm_site.call(*teardown, check=True)
                assert slurm_site.directories() == [], (function[1], call, number)
    assert killed >= 10, killed
    assert slurm_site.control("reap").stdout == "nothing is left behind\n"


def test_reap_names_orphans_and_removes_them_on_request(slurm_site, users):
    orphan = slurm_site.pool / "77.1"
    (orphan / "striped").mkdir(parents=True)
    (orphan / "striped" / "file").touch()
    orphan.chmod(0o700)
    chown(orphan, users.user)
    (slurm_site.pool / "README").mkdir()  # no name of an allocation
    users.script("sleep 60", DW)
    job = users.submit()
    users.wait(job, "RUNNING")
    assert complaints("control-status", slurm_site.status()) == []
    named = slurm_site.control("reap").stdout
    assert f"belongs to no allocation: {orphan} of nobody" in named and named.count("\n") == 2
    assert (orphan / "striped" / "file").exists()
    assert complaints("control-reap", json.loads(slurm_site.control("reap", "--json").stdout)) == []
    removed = slurm_site.control("reap", "--discard").stdout
    assert f"removed {orphan} of nobody" in removed
    (slurm_site.pool / "README").rmdir()
    assert slurm_site.directories() == [users.directory_of(job).parent.name]


def test_reap_has_the_node_that_answers_remove_an_orphan(slurm_site, users):
    orphan = slurm_site.pool / "77.2"
    orphan.mkdir(mode=0o700)
    chown(orphan, users.user)
    only_flash = slurm_site.top / "site-with-one-pool.toml"  # the nodes of other pools are waited for
    whole = (slurm_site.top / "site.toml").read_text()
    only_flash.write_text(whole.partition('[[pool]]\nname = "slow"')[0])
    slurm_site.kill_noded("n1", hold=True)  # the first node of the pool
    try:
        words = ["forebay", "control", "reap", "--discard"]
        said = slurm_site.run(words, FOREBAY_SITE=str(only_flash)).stdout
        assert f"removed {orphan} of nobody" in said and not orphan.exists()
    finally:
        slurm_site.release("n1")
        slurm_site.wait_until_up_again("n1")


def test_reap_removes_the_allocations_of_ended_jobs_that_slurm_left(slurm_site, users):
    """Slurm sometimes forgets the removal of a cancelled job. What may still be wanted is kept."""
    script = users.directory / "job.sh"

    def set_up(token, *directives):
        slurm_site.call(*setup_of(users, token, *directives), check=True)

    users.script("sleep 600")
    ended, pending = users.submit(), users.submit("--hold")
    users.wait(ended, "RUNNING")
    set_up(ended)
    users.run("scancel", ended)
    users.wait(ended)
    set_up(pending)
    set_up("900020")  # Slurm does not know it
    set_up("900021", "#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=/tmp/a")
    for function in ("data_in", "pre_run"):
        slurm_site.call("--function", function, "--token", "900021", "--job", script, check=True)
    # Variables of an administrator that leave out jobs of squeue.
    site = {"FOREBAY_SITE": str(slurm_site.top / "site.toml"), "SQUEUE_USERS": "daemon"}
    said = slurm_site.run(["forebay", "control", "reap"], **site).stdout
    assert sorted(said.splitlines()) == [f"removed the leftovers of {token}" for token in sorted([ended, "900020"])]
    kept = {one["token"]: one["phase"] for one in slurm_site.status()["allocations"]}
    assert kept == {pending: "ready", "900021": "running"}
    for token in kept:
        slurm_site.call("--function", "teardown", "--token", token, "--job", script, "--hurry", check=True)
