"""What a user learns when something fails, and that nothing is lost or left behind."""

import contextlib
import pathlib
import sqlite3
import subprocess
import time

from support.site_cluster import DAEMON, DW, MIB, chown
from support.site_staging import in_stage
from support.waiting import wait_until

OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/ destination=%d/results"
WRITES = "echo results > $DW_JOB_STRIPED/a"


def refused(batch, *directives, body="true"):
    """What sbatch says to a script that it refuses."""
    batch.script(body, *directives)
    said = batch.run("sbatch", "job.sh", check=False)
    assert said.returncode != 0, said.stdout
    return said.stderr


def test_wrong_directives_are_refused_at_submission(users):
    for directives, wanted in [
        ([DW.replace("16MiB", "1TiB")], "line 2: capacity= is larger than the whole pool flash, which has 384.00 MiB"),
        (
            [DW.replace("striped", "private") + " pool=flash"],
            "line 2: access_mode=private is not possible in the pool flash",
        ),
        ([DW.replace("striped", "striped,private")], "no pool of this site has access_mode=striped,private together"),
        ([DW + " placement=local"], "placement= is not possible in the pools of a site"),
        ([DW + " stripe_bytes=4MiB"], "stripe_bytes= is not possible in the pools of a site"),
        (
            [f"{DW} pool=local"],
            "access_mode=striped is not possible in the pool local: each node has a directory of its own",
        ),
        ([DW, "#DW stage_in type=file source=rel destination=$DW_JOB_STRIPED/a"], "line 3: "),
        ([DW, DW], "line 3: a second jobdw; the first is at line 2"),
    ]:
        assert wanted in refused(users, *directives), wanted
    said = refused(users, DW, body="rm -rf $DW_JOB_PRIVATE/*")
    assert "line 3: the script expands $DW_JOB_PRIVATE, which this job does not get" in said


def test_missing_source_is_the_reason_of_the_waiting_job(slurm_site, users):
    users.script("true", DW, "#DW stage_in type=file source=%d/no-such destination=$DW_JOB_STRIPED/a")
    job = users.submit()
    reason = users.waits_for(job, "no-such does not exist")
    assert "line 3: stage in: the source" in reason.replace("_", " ")
    users.run("scancel", job)
    users.wait_until_freed(job)
    assert slurm_site.directories() == []


def test_input_larger_than_the_allocation_is_refused(users):
    (users.directory / "big").write_bytes(bytes(17 * MIB))
    users.script("true", DW, "#DW stage_in type=file source=%d/big destination=$DW_JOB_STRIPED/big")
    reason = users.waits_for(users.submit(), "do not fit into the allocation of 16.00 MiB")
    assert "17.00 MiB" in reason and "ask for a larger capacity=" in reason


def test_results_that_cannot_be_delivered_are_kept_and_can_be_delivered_later(slurm_site, users):
    users.results.mkdir()
    users.results.chmod(0o755)  # root's
    users.script(WRITES, DW, OUT)
    job = users.submit()
    reason = users.waits_for(job, "Permission denied")
    assert f"scancel --hurry {job} throws it away" in reason
    kept = users.directory_of(job)
    assert f"/{kept.parent.name}/striped/: copy it from there" in reason and (kept / "a").read_text() == "results\n"
    again = slurm_site.control("deliver", job, check=False)
    assert again.returncode == 1 and "Permission denied" in again.stderr, again
    # Plain teardown, as Slurm calls it after a restart, does not throw them away either.
    torn = slurm_site.call("--function", "teardown", "--token", job, "--job", "/dev/null")
    assert torn.returncode == 1 and "Permission denied" in torn.stderr, torn
    assert (kept / "a").read_text() == "results\n"
    chown(users.results, users.user)
    assert f"the results of job {job} are at their destinations" in slurm_site.control("deliver", job).stderr
    assert (users.results / "a").read_text() == "results\n"
    users.run("scancel", "--hurry", job)
    users.wait_until_freed(job)
    assert slurm_site.directories() == []


def test_results_of_a_job_whose_id_is_used_again_can_be_delivered(slurm_site, users):
    """Slurm counts from the first ID again after a loss of its state."""
    users.results.mkdir()
    chown(users.results, users.user)
    script = users.script_for_calls(DW, OUT)

    def call(function, *words):
        return slurm_site.call("--function", function, "--token", "900004", "--job", script, *words, check=True)

    def set_up(user):
        call("setup", "--caller", "SLURM", "--user", user, "--groupid", user, "--capacity", "flash:16MiB")

    set_up(users.user)
    call("data_in")
    call("pre_run")
    first = slurm_site.allocation("900004")
    result = pathlib.Path(first["directory"]) / "striped" / "a"
    result.write_text("results\n")
    chown(result, users.user)
    wait_until(lambda: time.time() >= first["created_unix_s"] + 1)
    set_up(DAEMON)
    assert slurm_site.allocation("900004")["user"] == "daemon"
    call("teardown", "--hurry")
    assert slurm_site.allocation("900004") is None and result.exists()
    kept = result.parent.parent.name
    assert f"the results of job {kept} are at their destinations" in slurm_site.control("deliver", kept).stderr
    assert (users.results / "a").read_text() == "results\n"
    assert kept in slurm_site.control("reap").stdout
    assert slurm_site.status()["allocations"] == [] and slurm_site.directories() == []


def test_file_with_the_name_of_a_success_for_slurm_does_not_lose_results(slurm_site, users):
    """Slurm forgets an allocation when an error has the text `No matching session` or `token not found`."""
    name = "$DW_JOB_STRIPED/token not found, No matching session"
    users.script(f"echo results > '{name}'; chmod 0 '{name}'".replace("'", '"'), DW, OUT)
    job = users.submit()
    slurm_site.wait(lambda: f"data_out {job}: error" in users.log(), users.log)
    torn = slurm_site.call("--function", "teardown", "--token", job, "--job", "/dev/null")
    assert torn.returncode == 1 and "token_not_found, No_matching_session" in torn.stderr, torn
    assert "token not found" not in torn.stderr and "No matching session" not in torn.stderr
    users.waits_for(job, "No matching session")  # with blanks for underscores
    assert slurm_site.allocation(job)["phase"] == "staging-out"
    users.run("scancel", "--hurry", job)
    users.wait_until_freed(job)


def test_scancel_hurry_throws_undelivered_results_away(slurm_site, users):
    users.results.mkdir()
    users.script(WRITES, DW, OUT)
    job = users.submit()
    users.waits_for(job, "Permission denied")
    users.run("scancel", "--hurry", job)
    users.wait_until_freed(job)
    assert slurm_site.directories() == [] and users.arrived() == []


def test_results_that_were_not_written_are_named_without_more_tries(users):
    users.script("true", DW, OUT.replace("STRIPED/", "STRIPED/none"))
    reason = users.waits_for(users.submit(), "none does not exist")
    assert "kept in" in reason


def test_pool_of_a_group_is_closed_to_others(slurm_site, users, others):
    for batch in (users, others):
        batch.script("true", DW + " pool=members")
    reason = users.waits_for(users.submit(), "may not use the pool members")
    assert reason.endswith("nobody may not use the pool members; name another one with pool=, or ask the site ")
    assert others.wait(others.submit()) == "COMPLETED", others.log()


def test_request_beyond_user_max_is_refused_at_submission(users):
    for pool in ("", " pool=flash"):
        said = refused(users, DW.replace("16MiB", "336MiB") + pool)
        assert "line 2: 336.00 MiB of the pool flash are too much: a user may have 320.00 MiB" in said


def test_job_beyond_user_max_starts_when_another_job_of_the_user_ends(slurm_site, users, others):
    (users.directory / "input").write_text("input\n")
    stage_in = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
    users.script("sleep 600", DW.replace("16MiB", "304MiB"))
    holder = users.submit()
    assert users.wait(holder, "RUNNING") == "RUNNING"
    users.script("cat $DW_JOB_STRIPED/input", DW.replace("16MiB", "32MiB"), stage_in)
    waiting = users.submit()
    slurm_site.wait(lambda: (slurm_site.allocation(waiting) or {}).get("phase") == "waiting", users.log)
    pool = next(pool for pool in slurm_site.status()["pools"] if pool["name"] == "flash")
    assert pool["used"] == 19, "what waits has no space"
    # What another user asks for, and what still fits, is not held up.
    others.script("true", DW)
    assert others.wait(others.submit()) == "COMPLETED", others.log()
    users.script("true", DW)
    assert users.wait(users.submit()) == "COMPLETED", users.log()
    assert slurm_site.allocation(waiting)["phase"] == "waiting"
    assert users.show_job(waiting)["JobState"] == "PENDING" and users.show_job(waiting)["Priority"] != "0"
    users.run("scancel", holder)
    assert users.wait(waiting) == "COMPLETED", (users.reason(waiting), users.log())
    assert users.stdout_text() == "input\n"


def wait_for_user_max(slurm_site, users) -> tuple[str, str]:
    """A job that has all that its user may have, and one that waits for it."""
    users.script("sleep 600", DW.replace("16MiB", "320MiB"))
    holder = users.submit()
    assert users.wait(holder, "RUNNING") == "RUNNING"
    users.script("true", DW)
    waiting = users.submit()
    slurm_site.wait(lambda: f"{waiting}: waits for user_max" in users.log(), users.log)
    assert slurm_site.allocation(waiting)["phase"] == "waiting"
    return holder, waiting


def test_job_that_waits_for_user_max_starts_when_the_site_raises_it(slurm_site, users):
    """A file with errors is named in the log, and changes nothing."""
    holder, waiting = wait_for_user_max(slurm_site, users)
    file = slurm_site.top / "site.toml"
    text = file.read_text()
    assert text.count('user_max = "320MiB"') == 1

    def write(changed):
        """At once: calls of Slurm read it meanwhile."""
        new = file.with_suffix(".new")
        new.write_text(changed)
        new.replace(file)

    try:
        write(text.replace('"320MiB"', '"much"'))
        slurm_site.wait(lambda: f"{waiting}: " in users.log() and "much" in users.log(), users.log)
        write(text.replace('"320MiB"', '"336MiB"'))
        assert users.wait(waiting) == "COMPLETED", (users.reason(waiting), users.log())
        said = [line for line in users.log().splitlines() if f"{waiting}: " in line and "much" in line]
        assert len(said) == 1, said
    finally:
        write(text)
    assert users.show_job(holder)["JobState"] == "RUNNING"


def test_cancelled_job_that_waits_for_user_max_leaves_nothing(slurm_site, users):
    holder, waiting = wait_for_user_max(slurm_site, users)
    assert slurm_site.control("reap").stdout == "nothing is left behind\n"
    users.run("scancel", waiting)
    users.wait_until_freed(waiting)
    assert [one["token"] for one in slurm_site.status()["allocations"]] == [holder]


def test_cancelled_jobs_leave_nothing_in_any_state(slurm_site, users):
    (users.directory / "big").write_bytes(bytes(12 * MIB))
    chown(users.directory / "big", users.user)
    slow = [DW + " pool=slow", "#DW stage_in type=file source=%d/big destination=$DW_JOB_STRIPED/big"]
    # Pending, before it has an allocation.
    users.script("true", DW)
    held = users.submit("--hold")
    users.run("scancel", held)
    assert users.wait(held) == "CANCELLED" and slurm_site.allocation(held) is None
    # While it is staged in.
    users.script("true", *slow)
    staging = users.submit()
    in_stage(users, "in")
    users.run("scancel", staging)
    users.wait_until_freed(staging)
    assert slurm_site.directories("slow") == []
    # While it runs: what it wrote is staged out.
    users.script(f"{WRITES}; touch %s/running; sleep 600" % users.directory, DW, OUT)
    running = users.submit()
    users.wait_for_file("running")
    users.run("scancel", running)
    users.wait_until_freed(running)
    assert users.arrived() == ["a"] and slurm_site.directories() == []


def test_two_users_share_a_pool_and_see_nothing_of_each_other(slurm_site, users, others):
    body = "touch {done}; until [ -e {other} ]; do sleep 0.02; done; ls {pool} 2>&1; ls {pool}/* 2>&1; true"
    shared = slurm_site.shared
    names = [shared / f"both-{batch.user}" for batch in (users, others)]
    for batch, done, other in zip((users, others), names, reversed(names), strict=True):
        batch.script(f"{WRITES}; " + body.format(done=done, other=other, pool=slurm_site.pool), DW, OUT)
    jobs = [(batch, batch.submit()) for batch in (users, others)]
    for batch, job in jobs:
        assert batch.wait(job) == "COMPLETED", batch.log()
        assert (batch.results / "a").stat().st_uid == batch.user
        assert "Permission denied" in batch.stdout_text()
        batch.wait_until_freed(job)


def test_heterogeneous_jobs_are_refused(users):
    """Slurm gives each component other directives, and variables to one of them only."""
    said = refused(users, DW, "#SBATCH hetjob", "#SBATCH -N2")
    assert (
        "line 3: the job is heterogeneous: its components cannot share a burst buffer; submit one ordinary job" in said
    )
    # The script says nothing where the components come from the command line, or where another one has the directives.
    for options, directives in (("-N1 : -N2".split(), [DW]), ([], ["#SBATCH -N1", "#SBATCH hetjob", DW])):
        users.script("true", *directives)
        job = users.submit(*options)
        with_buffer = job if options else str(int(job) + 1)
        assert f"job {job} is heterogeneous" in users.waits_for(with_buffer, "is heterogeneous")
        users.run("scancel", job)


#: A name service that takes a question and never answers.
SILENT = """
import socket, sys, time
service = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
service.bind(("10.77.0.100", 53))
print("ready", flush=True)
print(b"lost" in service.recv(512), flush=True)
time.sleep(600)
"""


def test_name_service_that_does_not_answer_is_named_in_time(slurm_site, users):
    """It would keep the call for two minutes, and Slurm kills calls that take long."""
    users.script("true", DW)
    files = {name: slurm_site.top / f"{name}-of-silent-service" for name in ("site", "resolv", "switch")}
    files["site"].write_text((slurm_site.top / "site.toml").read_text().replace('["n1", "n2"]', '["lost"]'))
    files["resolv"].write_text("nameserver 10.77.0.100\noptions timeout:30 attempts:4\n")
    files["switch"].write_text("hosts: files dns\n")
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "flash:16MiB")
    words = ("--function", "setup", "--token", "900008", *of_user, "--job", users.directory / "job.sh")
    mounts = f"mount --bind {files['resolv']} /etc/resolv.conf && mount --bind {files['switch']} /etc/nsswitch.conf"
    become = ["setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"]
    in_own_mounts = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", *become]
    inside = ["nsenter", "--target", str(slurm_site.leader()), "--net"]
    with subprocess.Popen([*inside, "python3", "-c", SILENT], stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout.readline() == "ready\n"
            program = slurm_site.build / "bin" / "dw_wlm_cli"
            done = slurm_site.run([*in_own_mounts, program, *words], check=False, FOREBAY_SITE=str(files["site"]))
            assert service.stdout.readline() == "True\n", done
        finally:
            service.kill()
    assert done.returncode == 1
    assert "the address of lost was not found within 15 s; look at: getent hosts lost" in done.stderr, done
    assert slurm_site.allocation("900008") is None


def test_removal_where_the_pool_is_not_mounted_is_no_success(slurm_site, users):
    users.script("true", DW)
    script = users.directory / "job.sh"
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "flash:16MiB")
    slurm_site.call("--function", "setup", "--token", "900006", *of_user, "--job", script, check=True)
    node = slurm_site.allocation("900006")["node"].partition(":")[0]
    teardown = ("--function", "teardown", "--token", "900006", "--job", script, "--hurry")
    slurm_site.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", slurm_site.pool], node=node)
    try:
        failed = slurm_site.call(*teardown)
    finally:
        slurm_site.run(["umount", slurm_site.pool], node=node)
    assert (
        failed.returncode == 1 and "is not the directory of the pool; is the file system of the pool" in failed.stderr
    )
    assert len(slurm_site.directories()) == 1 and slurm_site.allocation("900006")
    slurm_site.call(*teardown, check=True)
    assert slurm_site.directories() == []


def test_allocation_of_a_user_who_left_the_group_of_the_job_is_removed(slurm_site, users):
    users.script("true", DW)
    script = users.directory / "job.sh"
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "flash:16MiB")
    slurm_site.call("--function", "setup", "--token", "900007", *of_user, "--job", script, check=True)
    with contextlib.closing(sqlite3.connect(slurm_site.state / "state.sqlite")) as state, state:
        state.execute("UPDATE session SET group_id = 2 WHERE token = '900007'")
    teardown = ("--function", "teardown", "--token", "900007", "--job", script, "--hurry")
    slurm_site.call(*teardown, check=True)
    assert slurm_site.directories() == []
