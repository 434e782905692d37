"""Allocations that outlive their jobs: made, used by several jobs, kept through kills, destroyed."""

import json

import pytest
from support.job import DW, INTERRUPT, KILL, finished
from support.persistent import (
    CREATE,
    DESTROY,
    STRIPED,
    USE,
    WAIT,
    begun,
    listed,
    made,
    assert_job_allocations_removed,
    ran,
    refused,
    root,
)
from support.users import as_user, reachable, root_only, starts_as
from support.waiting import wait_until


@pytest.fixture
def shared(build):
    """A job in directories that every user can reach."""
    with reachable(build) as job:
        yield job
        job.command("clean", "--discard", "--kill")


def test_persistent_allocation_is_created_used_and_destroyed(job):
    assert "persistent allocation proj1 of 1.00 MiB made in" in ran(job, "exit 0", CREATE).stderr
    assert_job_allocations_removed(job, "proj1")
    assert (root(job) / "striped").stat().st_mode & 0o7777 == 0o700
    (job.directory / "in").mkdir()
    (job.directory / "in" / "a.dat").write_text("first")
    stage_in = f"#DW stage_in type=directory source=%d/in destination={STRIPED}/in"
    ran(job, f'echo -n " {STRIPED}" > path; cp ${{DW_PERSISTENT_STRIPED_proj1}}in/a.dat {STRIPED}/b.dat', USE, stage_in)
    assert (job.directory / "path").read_text() == f" {root(job)}/striped/"
    assert not (job.store / "forebay-persistent-proj1" / "striped" / "ran").exists()
    # The next job finds the data, adds to them, and stages out of it and of its own.
    outs = [
        f"#DW stage_out type=file source={STRIPED}/b.dat destination=%d/b.dat",
        "#DW stage_out type=file source=$DW_JOB_STRIPED/c.dat destination=%d/c.dat",
    ]
    ran(job, f"echo -n ' second' >> {STRIPED}/b.dat; cat {STRIPED}/b.dat > $DW_JOB_STRIPED/c.dat", DW, USE, *outs)
    assert (job.directory / "b.dat").read_text() == (job.directory / "c.dat").read_text() == "first second"
    assert_job_allocations_removed(job, "proj1")
    done = ran(job, "echo over", DESTROY)
    assert done.stdout == "over\n" and "persistent allocation proj1 destroyed" in done.stderr
    assert_job_allocations_removed(job)
    assert list((job.state / "persistent").iterdir()) == []


def test_script_can_create_and_use_several_persistent_allocations(job):
    made(job, "a-b.c")
    used = ran(
        job,
        'echo "$DW_PERSISTENT_STRIPED_proj1"; echo "$DW_PERSISTENT_STRIPED_a_b_c"; tr "\\0" "\\n" < /proc/$$/environ | grep STRIPED_a-b',
        CREATE,
        USE,
        "#DW persistentdw name=a-b.c",
        options=("--json", "--output", "out", "--explain"),
    )
    first, second, third = (job.directory / "out").read_text().splitlines()
    assert first == f"{root(job)}/striped/" and second == f"{root(job, 'a-b.c')}/striped/"
    assert third == f"DW_PERSISTENT_STRIPED_a-b.c={second}"
    account = json.loads(used.stdout)["persistent"]
    assert [(one["action"], one["name"]) for one in account] == [
        ("create", "proj1"),
        ("use", "proj1"),
        ("use", "a-b.c"),
    ]
    assert (
        f"persistent allocation a-b.c: $DW_PERSISTENT_STRIPED_a-b.c, $DW_PERSISTENT_STRIPED_a_b_c is {second}"
        in used.stderr
    )
    assert_job_allocations_removed(job, "a-b.c", "proj1")


def test_variables_of_an_outer_job_are_not_inherited(job):
    job.script("env | grep -c DW_PERSISTENT; true")
    done = job.run(DW_PERSISTENT_STRIPED_x="/elsewhere/")
    assert done.stdout == "0\n"


def test_nnf_jobs_get_the_persistent_variable(job):
    ran(job, "true", "#DW create_persistent type=lustre name=proj-1 capacity=1MiB")
    done = ran(
        job,
        "echo $DW_PERSISTENT_proj_1",
        "#DW persistentdw name=proj-1",
        "#DW create_persistent type=xfs name=other capacity=1MiB",
    )
    assert done.stdout == f"{root(job, 'proj-1')}/striped/\n"
    ran(job, "true", "#DW destroy_persistent name=proj-1")
    assert_job_allocations_removed(job, "other")


def test_second_create_is_an_error_that_names_owner_and_time(job):
    ran(job, "true", CREATE)
    error = refused(job, CREATE)
    assert "error: job.sh: line 3: there is a persistent allocation proj1 already, made by" in error
    assert "T" in error.split(" on ")[1] and "by job" in error and "(job.sh)" in error and "hint: use it with" in error
    assert refused(job, CREATE, options=("--dry-run",)).startswith("error: job.sh: line 3: there is")
    done = job.command("persistent", "create", "proj1", "--capacity", "1MiB", *job.where)
    assert done.returncode == 1 and "already, made by" in done.stderr
    assert_job_allocations_removed(job, "proj1")


def test_requeued_job_reuses_its_own_allocation(job):
    job.script("true", CREATE)
    for number, code in (("17", 0), ("17", 0), ("18", 125)):
        done = job.run(SLURM_JOB_ID=number)
        assert done.returncode == code, done.stderr
    assert_job_allocations_removed(job, "proj1")


def test_dry_run_names_persistent_allocations_and_creates_none(job):
    made(job, "old")
    made(job, "used")
    job.script(
        "true",
        CREATE,
        USE,
        "#DW persistentdw name=used",
        "#BB destroy_persistent name=old",
        f"#DW stage_out type=file source={STRIPED}/x destination=/tmp/x",
    )
    done = job.run("--dry-run")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"create      proj1: 1.00 MiB in {job.store}" in lines
    assert f"use         proj1: 1.00 MiB in {job.store}, $DW_PERSISTENT_STRIPED_proj1" in lines
    assert f"use         used: 1.00 MiB in {job.store}, $DW_PERSISTENT_STRIPED_used" in lines
    assert f"destroy     old: 1.00 MiB in {job.store}" in lines
    assert any(line.startswith(f"stage out   file {STRIPED}/x -> /tmp/x") for line in lines)
    plans = json.loads(job.run("--dry-run", "--json").stdout)["persistent"]
    assert [plan["action"] for plan in plans] == ["create", "use", "use", "destroy"]
    assert_job_allocations_removed(job, "old", "used")


def test_unknown_name_is_answered_with_the_known_ones(job):
    error = refused(job, USE)
    assert (
        f"line 3: there is no persistent allocation proj1 in {job.store}" in error and "#BB create_persistent" in error
    )
    made(job, "other")
    assert "hint: there are: other;" in refused(job, USE)
    assert "hint: there are: other;" in refused(job, DESTROY)
    done = job.command("persistent", "show", "proj1", *job.where)
    assert done.returncode == 1 and "there are: other" in done.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["1a", "--capacity", "1MiB"], "1a is no name: it begins with a letter"),
        (["a" * 65, "--capacity", "1MiB"], "is too long: it has 65 characters, at most 64"),
        (["a/b", "--capacity", "1MiB"], "a/b is no name"),
        (["a"], "--capacity <SIZE>"),
        (["a", "--capacity", "0"], "it is zero"),
        (["a", "--capacity", "1MiB", "--mode", "0070"], "three octal digits that begin with 7"),
        (["a", "--capacity", "1MiB", "--mode", "9"], "three octal digits"),
        (["a", "--capacity", "1MiB", "--group", "no-such-group"], "there is no group no-such-group"),
        (["a", "--capacity", "1MiB", "--expires", "soon"], "write for example 30d"),
        (["a", "--capacity", "1MiB", "--access-mode", "private"], "striped"),
        (["a", "--capacity", "500PiB", "--strict-capacity"], "are asked for, and the store"),
    ],
)
def test_bad_arguments_create_nothing(job, words, what):
    done = job.command("persistent", "create", *words, *job.where)
    assert done.returncode in (1, 2) and what in done.stderr, done.stderr
    assert done.returncode == 2 or "hint: " in done.stderr
    assert job.allocations() == []


def test_persistent_capacity_is_a_request(job):
    done = job.command("persistent", "create", "big", "--capacity", "500PiB", *job.where)
    assert done.returncode == 0 and "warning: 500.00 PiB are asked for big; the store has" in done.stderr
    assert 0 < listed(job)["big"]["capacity_bytes"] < 500 << 50
    assert "are asked for, and the store" in refused(
        job, CREATE.replace("1MiB", "500PiB"), options=("--strict-capacity",)
    )


def test_use_beyond_the_capacity_is_reported(job):
    full = "head -c %s /dev/zero > " + f"{STRIPED}/x"
    assert "holds" not in ran(job, full % "500K", CREATE, USE).stderr
    done = ran(job, full % "2M", USE)
    assert "warning: the persistent allocation proj1 of 1.00 MiB holds 2.00 MiB: where" in done.stderr
    ran(job, "true", DESTROY)


def test_unmounted_store_is_named(job):
    made(job)
    away = job.store.with_name("unmounted")
    job.store.rename(away)
    job.where = []
    error = refused(job, USE)
    assert f"is not there: it was made as {root(job)}" in error and "hint: mount its file system" in error
    done = job.command("persistent", "destroy", "proj1")
    assert done.returncode == 1 and "--hurry proj1" in done.stderr
    (line,) = json.loads(job.command("status", "--json").stdout)
    assert (line["persistent"], line["state"]) == ("proj1", "missing")
    away.rename(job.store)
    assert ran(job, f"echo {STRIPED}", USE).stdout == f"{root(job)}/striped/\n"  # found without --store


def test_record_is_next_to_the_data_and_needs_no_state_directory(job):
    made(job)
    for path in sorted(job.state.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    shown = listed(job)["proj1"]
    assert (shown["state"], shown["capacity_bytes"], shown["path"]) == ("ready", 1 << 20, f"{root(job)}/striped")
    ran(job, "true", USE)
    ran(job, "true", DESTROY)
    assert job.allocations() == []


def test_damaged_record_is_named_and_can_be_destroyed(job):
    made(job)
    (root(job) / "striped" / "data").write_text("kept")
    (root(job) / "allocation.json").write_text("{")
    error = refused(job, USE)
    assert "line 3: the record of the persistent allocation proj1 is damaged: EOF while parsing" in error
    assert f"hint: the data are in {root(job)}/striped" in error
    assert listed(job)["proj1"]["state"] == "damaged"
    assert (root(job) / "striped" / "data").read_text() == "kept"
    assert job.command("persistent", "destroy", "proj1", *job.where).returncode == 0
    assert job.allocations() == []


def test_expired_allocation_accepts_no_job_and_is_not_deleted(job):
    made(job, "proj1", "--expires", "1h")
    ran(job, "true", USE)
    record = root(job) / "allocation.json"
    about = json.loads(record.read_text())
    assert about["expires_unix_s"] - about["created_unix_s"] == 3600
    about["expires_unix_s"] = about["created_unix_s"] = 1_000_000_000
    record.write_text(json.dumps(about))
    error = refused(job, USE)
    assert "line 3: the persistent allocation proj1 expired on 2001-09-09T01:46:40Z" in error
    assert listed(job)["proj1"]["state"] == "expired"
    assert "expired" in job.command("status").stdout
    ran(job, "true", DESTROY)


def test_name_in_two_stores_needs_the_store_option(job):
    made(job)
    other = job.store.with_name("other")
    other.mkdir()
    assert job.command("persistent", "create", "proj1", "--capacity", "1MiB", "--store", other).returncode == 0
    assert ran(job, f"echo {STRIPED}", USE).stdout == f"{root(job)}/striped/\n"
    job.where = []
    assert "hint: name the store with --store DIR" in refused(job, USE)


def test_status_lists_persistent_allocations_with_the_jobs(job):
    assert job.command("status").stdout == "no jobs, nothing left behind\n"
    made(job)
    text = job.command("status").stdout
    assert "proj1" in text and "ready" in text and f"{root(job)}/striped" in text
    (line,) = json.loads(job.command("status", "--json").stdout)
    assert (line["persistent"], line["jobs"], line["mode"]) == ("proj1", [], "0700")
    shown = job.command("persistent", "show", "proj1").stdout
    assert "state     ready" in shown and "capacity  1.00 MiB" in shown


def test_series_refuses_persistent_allocations(job):
    made(job)
    job.script("true", USE)
    done = job.command("__series", *job.where, "job.sh")
    assert done.returncode == 125 and "cannot be run as a series" in done.stderr
    assert_job_allocations_removed(job, "proj1")


def test_persistent_allocation_survives_the_kill_of_one_of_two_jobs(job):
    made(job)
    out = f"#DW stage_out type=file source={STRIPED}/killed destination=%d/arrived"
    first = begun(job, "stays")
    second = begun(job, "killed", out)
    jobs = listed(job)["proj1"]["jobs"]
    assert (listed(job)["proj1"]["state"], [one["state"] for one in jobs]) == ("in-use", ["running", "running"])
    ids = {one["script"]: one["run_id"] for one in jobs}
    error = refused(job, DESTROY)
    assert f"proj1 is in use: job {ids['stays.sh']} (stays.sh, ada), job {ids['killed.sh']} (killed.sh, ada)" in error
    hurried = job.command("persistent", "destroy", "--hurry", "proj1")
    assert hurried.returncode == 1 and "is in use" in hurried.stderr
    job.stop_when(second, lambda: True, KILL)
    # The killed job's own processes go on: it still counts.
    states = {one["script"]: one["state"] for one in listed(job)["proj1"]["jobs"]}
    assert states == {"stays.sh": "running", "killed.sh": "killed"}
    (job.directory / "go").touch()
    assert finished(first).returncode == 0
    wait_until(lambda: [one["state"] for one in listed(job)["proj1"]["jobs"]] == ["left"])
    assert listed(job)["proj1"]["state"] == "ready"
    # What the killed one was to stage out holds the allocation, until it is drained.
    error = refused(job, DESTROY)
    assert f"holds what is to be staged out yet: job {ids['killed.sh']}" in error and "forebay clean" in error
    cleaned = job.command("clean", ids["killed.sh"])
    assert cleaned.returncode == 0, cleaned.stderr
    assert (job.directory / "arrived").read_text() == "killed\n"
    assert sorted(path.name for path in (root(job) / "striped").iterdir()) == ["killed", "stays"]
    assert_job_allocations_removed(job, "proj1")
    ran(job, "true", DESTROY)


def test_hurry_deletes_what_a_killed_job_was_to_stage_out(job):
    made(job)
    process = begun(job, "killed", f"#DW stage_out type=file source={STRIPED}/killed destination=%d/arrived")
    (one,) = listed(job)["proj1"]["jobs"]
    job.stop_when(process, lambda: True, KILL)
    (job.directory / "go").touch()
    wait_until(lambda: [one["state"] for one in listed(job)["proj1"]["jobs"]] == ["left"])
    assert job.command("persistent", "destroy", "proj1").returncode == 1
    ran(job, "true", DESTROY + " hurry")
    failed = job.command("clean", one["run_id"])
    assert failed.returncode == 123 and "killed" in failed.stderr  # it says so; nothing can be drained any more
    assert job.command("clean", "--discard", one["run_id"]).returncode == 0
    assert_job_allocations_removed(job)


def test_failed_stage_out_keeps_the_use_until_it_succeeds(job):
    made(job)
    target = job.directory / "missing" / "there"
    job.script(
        f"echo data > {STRIPED}/x",
        USE,
        f"#DW stage_out type=file source={STRIPED}/x destination=%d/missing/there",
        f"#DW stage_out type=file source={STRIPED}/y destination=%d/y",
    )
    done = job.run("--json")
    assert done.returncode == 123, done.stderr
    outcome = json.loads(done.stdout)
    assert (
        outcome["kept"] == f"{root(job)}/striped"
        and f"forebay clean {outcome['run_id']} stages out what is missing" in done.stderr
    )
    assert f"data are in {root(job)}/striped" in done.stderr
    assert "not staged out" in job.command("status").stdout
    error = refused(job, DESTROY)
    assert f"holds what is to be staged out yet: job {outcome['run_id']}" in error
    (root(job) / "striped" / "y").write_text("mended")
    assert job.command("clean").returncode == 0
    assert (target.read_text(), (job.directory / "y").read_text()) == ("data\n", "mended")
    assert_job_allocations_removed(job, "proj1")


def test_lists_can_name_persistent_allocations(job):
    made(job)
    (job.directory / "a.dat").write_text("listed")
    (job.directory / "list").write_text(f'"{job.directory}/a.dat" {STRIPED}/deep/\n')
    ran(job, "true", USE, "#DW stage_in type=list source=%d/list")
    assert (root(job) / "striped" / "deep" / "a.dat").read_text() == "listed"
    (job.directory / "list").write_text(f'"{job.directory}/a.dat" $DW_JOB_STRIPED/a.dat\n')
    error = refused(job, USE, "#DW stage_in type=list source=%d/list")
    assert "the job has no allocation of its own" in error


def test_one_of_two_concurrent_creates_succeeds(job):
    job.script("true", CREATE)
    both = [job.start(), job.start()]
    codes = sorted(finished(one).returncode for one in both)
    assert codes == [0, 125]
    assert_job_allocations_removed(job, "proj1")


def test_job_runs_and_can_be_stopped_during_removal_of_what_it_destroys(job):
    """A tree so large that removing it takes longer than the script: the first call of each thread that removes a name waits."""
    made(job)
    (root(job) / "striped" / "data").touch()
    job.script(f"ls '{job.store}' > names; touch running; exec sleep 60", DESTROY)
    slow = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=unlinkat"]
    slow += ["-e", "inject=unlinkat:delay_enter=5000000:when=1"]
    real, job.forebay = job.forebay, slow[0]
    process = job.forebay_starts(*slow[1:], real, "run", *job.where, "job.sh")
    job.forebay = real
    status, error = job.stop_when(process, (job.directory / "running").exists, INTERRUPT)
    assert status == 130 and "persistent allocation proj1 destroyed" in error, error
    (name,) = (job.directory / "names").read_text().split()
    assert name.startswith("forebay-unfinished~proj1~")
    assert_job_allocations_removed(job)
    assert list((job.state / "persistent").iterdir()) == []


def test_private_view_shows_persistent_allocations(job):
    made(job)
    where, job.where = job.where, ["--store", "memory"]
    done = ran(job, f"echo memory > $DW_JOB_STRIPED/x; cp $DW_JOB_STRIPED/x {STRIPED}/x", DW, USE)
    assert (root(job) / "striped" / "x").read_text() == "memory\n", done.stderr
    job.where = where
    error = refused(job, USE, options=("--map", f"{job.store}={job.directory}"))
    assert f"it would hide {root(job)}, which the job needs" in error
    assert_job_allocations_removed(job, "proj1")


@root_only
def test_several_users_share_one_store(shared):
    job, (ada, bob, guest) = shared, (40001, 40002, 4242)
    job.store.chmod(0o1777)
    job.temporary.chmod(0o1777)
    job.directory.chmod(0o1777)
    create = ["persistent", "create", "--capacity", "1MiB", "--store", job.store]
    assert as_user(job, ada, *create, "own").returncode == 0
    assert as_user(job, ada, *create, "team", "--group", str(guest), "--mode", "0770", groups=(guest,)).returncode == 0
    assert as_user(job, ada, *create, "foreign", "--group", str(guest)).returncode == 1  # not a group of hers
    seen = json.loads(as_user(job, bob, "persistent", "list", "--json", "--store", job.store).stdout)
    own, team = seen
    assert (own["persistent"], own["owner"], own["state"], own["used_bytes"]) == ("own", "40001", "closed", None)
    assert (team["group"], team["mode"], team["state"]) == (str(guest), "0770", "closed")
    for name in ("own", "team"):
        done = as_user(job, bob, "persistent", "destroy", "--hurry", name, "--store", job.store)
        assert done.returncode == 1 and f"{name} is 40001's" in done.stderr
    team_script = """#!/bin/bash
#DW persistentdw name=team
mkdir -p $DW_PERSISTENT_STRIPED_team/deep
echo shared >> $DW_PERSISTENT_STRIPED_team/deep/x
"""
    for name in ("own", "team"):
        (job.directory / f"{name}.sh").write_text(team_script.replace("team", name))
    run = ["run", "--store", job.store]
    done = as_user(job, bob, *run, "own.sh")
    assert done.returncode == 125 and "own is 40001's, and closed to you" in done.stderr
    done = as_user(job, bob, *run, "team.sh", groups=(guest,))
    assert done.returncode == 0, done.stderr
    written = root(job, "team") / "striped" / "deep" / "x"
    assert (written.stat().st_uid, written.stat().st_gid) == (bob, guest)
    # What one makes the others may change, whatever his umask; the owner sees whose job it is.
    waiting = job.directory / "waiting.sh"
    waiting.write_text(team_script.replace("mkdir", "#") + f"touch runs; {WAIT}\n")
    process = starts_as(job, bob, *run, "waiting.sh", groups=(guest,))
    wait_until((job.directory / "runs").exists)
    done = as_user(job, ada, *run, "team.sh")
    assert done.returncode == 0, done.stderr
    done = as_user(job, ada, "persistent", "destroy", "team", "--store", job.store)
    assert done.returncode == 1 and "team is in use: job" in done.stderr and "(waiting.sh, user40002)" in done.stderr
    (job.directory / "go").touch()
    assert finished(process).returncode == 0
    assert written.read_text() == "shared\n" * 3
    done = as_user(job, bob, *create, "own")
    assert done.returncode == 1 and "made by 40001" in done.stderr
    for name in ("own", "team"):
        done = as_user(job, ada, "persistent", "destroy", name, "--store", job.store)
        assert done.returncode == 0, done.stderr
    assert job.allocations() == []


@root_only
def test_ordinary_user_creates_uses_and_destroys_like_root(shared):
    shared.as_nobody()
    ran(shared, f"echo x > {STRIPED}/x", CREATE, USE)
    ran(shared, f"cat {STRIPED}/x", USE, options=("--json",))
    ran(shared, "true", DESTROY)
    assert_job_allocations_removed(shared)
