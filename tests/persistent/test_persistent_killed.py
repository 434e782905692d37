"""Making, using and destroying a persistent allocation is killed at each call that changes something."""

import json
import os

import pytest
from support.job import DW, KILL
from support.strace import abandoned, calls_made, has_ended, kill_at_syscall, kill_at_each_syscall, points
from support.persistent import STRIPED, USE, listed, made, assert_job_allocations_removed, root
from support.users import another_users_program, reachable
from support.waiting import wait_until


def killed_everywhere(job, calls, words, prepare=lambda name: None, threads=False):
    """A command killed at each of its calls, with a name of its own each time; these names."""
    names = []
    for call in calls:
        prepare(f"{call}-0")
        for number in points(calls_made(job, call, *words(f"{call}-0"), threads=threads)):
            name = f"{call}-{number}"
            prepare(name)
            if kill_at_syscall(job, call, number, *words(name), threads=threads) is not None:
                names.append(name)
    return names


def test_create_killed_at_any_step_makes_all_or_nothing(job):
    words = lambda name: ["persistent", "create", name, "--capacity", "1MiB", *job.where, "--group", str(os.getgid())]
    calls = ("mkdir", "chmod", "rename", "symlink", "fsync", "flock", "chown")
    names = killed_everywhere(job, calls, words)
    assert len(names) > 10
    abandoned(job)
    seen = listed(job)
    states = [one["state"] for one in seen.values()]
    assert set(states) == {"ready", "unfinished"}
    for name in names:
        if name in seen and seen[name]["state"] == "ready":
            assert (seen[name]["capacity_bytes"], seen[name]["problem"]) == (1 << 20, None)
        if name in seen:
            done = job.command("persistent", "destroy", name, *job.where)
            assert done.returncode == 0, (name, done.stderr)
    # Those that succeeded, one of each kind of call.
    for name in listed(job):
        assert job.command("persistent", "destroy", name, *job.where).returncode == 0
    assert job.allocations() == []
    assert list((job.state / "persistent").iterdir()) == []


def test_destroy_killed_at_any_step_removes_all_or_nothing(job):
    def prepare(name):
        made(job, name)
        (root(job, name) / "striped" / "deep").mkdir()
        (root(job, name) / "striped" / "deep" / "data").write_text(name)

    words = lambda name: ["persistent", "destroy", name, *job.where]
    names = killed_everywhere(job, ("rename", "unlink", "unlinkat", "rmdir", "fsync"), words, prepare)
    assert len(names) > 5
    abandoned(job)
    seen = listed(job)
    for name in names:
        assert name in seen or not list(job.store.glob(f"*{name}~*")), name
        if name in seen and seen[name]["state"] == "ready":
            assert (root(job, name) / "striped" / "deep" / "data").read_text() == name
    for name in names:
        if name in seen:
            done = job.command("persistent", "destroy", name, *job.where)
            assert done.returncode == 0, (name, done.stderr)
    assert job.allocations() == []
    assert list((job.state / "persistent").iterdir()) == []


def test_next_create_removes_leftovers_of_a_killed_one(job):
    words = ["persistent", "create", "a", "--capacity", "1MiB", *job.where]
    assert kill_at_syscall(job, "rename", 2, *words)
    assert [one["state"] for one in listed(job).values()] == ["unfinished"]
    abandoned(job)
    made(job, "b")
    assert list(listed(job)) == ["b"]


@pytest.mark.parametrize("call", ["rename", "mkdir", "unlink"])
def test_job_killed_at_any_step_leaves_the_data_and_no_use(job, call):
    made(job)
    kept = root(job) / "striped" / "kept"
    kept.write_text("precious")
    job.script(
        f"cat {STRIPED}/kept > {STRIPED}/copy",
        USE,
        f"#DW stage_out type=file source={STRIPED}/copy destination=%d/copy",
    )
    number = 0
    for number in kill_at_each_syscall(job, call, "run", *job.where, "job.sh"):
        done = job.command("clean", "--kill", "--discard")
        assert done.returncode == 0, (number, done.stderr)
        if list(job.temporary.iterdir()) or [path for path in job.state.iterdir() if path.suffix]:
            abandoned(job)
            job.command("clean")
            job.settings.clear()
        assert kept.read_text() == "precious"
        # What was being written when it was killed is no use, and goes with the allocation.
        assert listed(job)["proj1"]["jobs"] == [], number
        assert list(job.temporary.iterdir()) == []
    assert number > 0


def test_job_killed_at_any_step_destroys_all_or_nothing(job):
    """Its name goes before the script is started, what is in it while that runs."""

    def prepare(name):
        made(job, name)
        (root(job, name) / "striped" / "deep").mkdir()
        (root(job, name) / "striped" / "deep" / "data").write_text(name)
        job.script("exit 0", f"#BB destroy_persistent name={name}")

    def words(name):
        return ["run", *job.where, "job.sh"]

    names = killed_everywhere(job, ("rename", "unlinkat"), words, prepare, threads=True)
    assert len(names) > 5
    abandoned(job)
    done = job.command("clean", "--kill", "--discard")
    assert done.returncode == 0, done.stderr
    seen = listed(job)
    for name in names:
        assert name in seen or not list(job.store.glob(f"*{name}*")), name
        if name in seen and seen[name]["state"] == "ready":
            assert (root(job, name) / "striped" / "deep" / "data").read_text() == name
    # Some were killed before its name was gone; what was left of others the next one made has swept.
    assert 0 < len(seen) < len(names)
    for name in seen:
        done = job.command("persistent", "destroy", name, *job.where)
        assert done.returncode == 0, (name, done.stderr)
    assert_job_allocations_removed(job)
    assert list((job.state / "persistent").iterdir()) == []


def test_job_killed_after_its_script_is_drained_by_clean(job):
    made(job)
    job.script(
        f"echo results > {STRIPED}/x; touch running; exec sleep 60",
        USE,
        f"#DW stage_out type=file source={STRIPED}/x destination=%d/x",
    )
    process = job.start()
    job.stop_when(process, (job.directory / "running").exists, KILL)
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "x").read_text() == "results\n"
    assert (root(job) / "striped" / "x").read_text() == "results\n"
    assert_job_allocations_removed(job, "proj1")


def test_job_killed_by_a_restart_of_the_machine_is_drained_by_clean(build):
    with reachable(build) as job:
        if os.getuid() == 0:
            job.as_nobody()  # after a restart all of root's processes would be looked into
        drained_after_a_restart(job)


def drained_after_a_restart(job):
    made(job)
    stage_out = f"#DW stage_out type=file source={STRIPED}/x destination=%d/x"
    job.script(f"echo results > {STRIPED}/x; touch running; exec sleep 60", USE, stage_out)
    job.stop_when(job.start(), (job.directory / "running").exists, KILL)
    (use,) = listed(job)["proj1"]["jobs"]
    for pid in use["processes"]:
        os.kill(pid, KILL)
    # As if it had been before the machine was started.
    (record,) = job.state.glob("*.json")
    (written,) = (root(job) / "uses").iterdir()
    for path in (record, written):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": "an earlier one"}))
    (use,) = listed(job)["proj1"]["jobs"]
    assert use["state"] == "left"
    done = job.command("persistent", "destroy", "proj1")
    assert done.returncode == 1 and f"to be staged out yet: job {use['run_id']}" in done.stderr
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "x").read_text() == "results\n"
    assert_job_allocations_removed(job, "proj1")


def test_persistent_data_are_not_lost_with_the_job_memory(job):
    made(job)
    where, job.where = job.where, []
    stage_outs = [
        f"#DW stage_out type=file source={name}/x destination=%d/{n}"
        for n, name in enumerate(("$DW_JOB_STRIPED", STRIPED))
    ]
    job.script(
        f"echo results | tee $DW_JOB_STRIPED/x > {STRIPED}/x; touch running; exec sleep 60", DW, USE, *stage_outs
    )
    job.stop_when(job.start(), (job.directory / "running").exists, KILL)
    (line, _) = json.loads(job.command("status", "--json").stdout)
    killed = [*line["processes"], job.keeper()]
    for pid in killed:
        os.kill(pid, KILL)
    wait_until(lambda: all(has_ended(pid) for pid in killed))
    job.where = where
    (line, _) = json.loads(job.command("status", "--json").stdout)
    assert (line["state"], listed(job)["proj1"]["jobs"][0]["state"]) == ("lost", "left")
    # Its destinations may have been paths that only its view showed.
    done = job.command("clean", line["job_id"])
    assert done.returncode == 1 and f"its data are in {root(job)}/striped" in done.stderr
    assert job.command("persistent", "destroy", "proj1").returncode == 1
    assert job.command("clean", "--discard", line["job_id"]).returncode == 0
    assert (root(job) / "striped" / "x").read_text() == "results\n"
    assert_job_allocations_removed(job, "proj1")


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a program that runs as another user")
def test_allocation_is_in_use_while_an_unkillable_process_runs(build):
    with reachable(build) as job:
        foreign = another_users_program(job.directory.parent)
        job.as_nobody()
        made(job)
        begin = f"{foreign} > /dev/null 2>&1 & echo $! > pid"
        job.script(f"{begin}; until grep -q sleep /proc/$!/comm; do sleep 0.01; done", USE)
        try:
            done = job.run()
            pid = int((job.directory / "pid").read_text())
            assert done.returncode == 123 and f"may still write: {pid}" in done.stderr, done.stderr
            (use,) = listed(job)["proj1"]["jobs"]
            assert (use["state"], use["processes"]) == ("killed", [pid])
            destroyed = job.command("persistent", "destroy", "--hurry", "proj1", *job.where)
            assert destroyed.returncode == 1 and f"in use: job {use['run_id']}" in destroyed.stderr, destroyed.stderr
            cleaned = job.command("clean")
            assert cleaned.returncode == 1 and str(pid) in cleaned.stderr, cleaned.stderr
        finally:
            if (job.directory / "pid").exists():
                os.kill(int((job.directory / "pid").read_text()), KILL)
        wait_until(lambda: has_ended(pid))
        assert job.command("clean").returncode == 0
        assert_job_allocations_removed(job, "proj1")
        assert job.command("persistent", "destroy", "proj1", *job.where).returncode == 0
