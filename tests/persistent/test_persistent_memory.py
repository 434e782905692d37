"""Persistent allocations where no store is named: in shared memory. Each test has a /dev/shm of its own."""

import json
import os
import subprocess

import pytest
from support.job import DW, NOBODY, Job, finished
from support.persistent import CREATE, DESTROY, STRIPED, USE
from support.users import reachable

# Stays in a mount namespace with a /dev/shm of its own, as long as the test holds its standard input. /run
# there is that of a machine which systemd runs.
HOLDS = """
mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system
mount -t tmpfs tmpfs /mnt && mkdir -p /mnt/nvme && chmod 1777 /mnt/nvme
echo ready
read -r end
"""
ENTERS = """#!/bin/sh
exec nsenter --mount=/proc/{holder}/ns/mnt {user} sh -c 'cd "$0" && exec "$@"' "$PWD" {forebay} "$@"
"""
WAIT = "for i in $(seq 3000); do [ -e {0} ] && break; sleep 0.02; done; [ -e {0} ]"


@pytest.fixture
def namespace(build):
    """A job in a namespace of its own, and the process that holds that."""
    if os.getuid() != 0:
        pytest.skip("only root can mount what several processes see")
    pipe = subprocess.PIPE
    with reachable(build) as job:
        holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", HOLDS], stdin=pipe, stdout=pipe, text=True)
        try:
            assert holder.stdout.readline() == "ready\n"
            job.where, job.inside = [], (job.forebay, holder.pid)
            enter(job)
            yield job
            job.command("clean", "--discard", "--kill")
            assert job.keepers() == []
        finally:
            holder.stdin.close()
            holder.wait(timeout=300)
            holder.stdout.close()


def enter(job: Job, user: int | None = None) -> None:
    """From here on forebay runs in the namespace, as this user."""
    forebay, holder = job.inside
    of_user = "" if user is None else f"--setuid={user} --setgid={user}"
    wrapper = job.directory.parent / f"forebay-of-{user}"
    wrapper.write_text(ENTERS.format(holder=holder, user=of_user, forebay=forebay))
    wrapper.chmod(0o755)
    job.forebay = wrapper


@pytest.fixture(params=["root", "nobody"])
def anyone(namespace, request):
    """The same, as the superuser and as an ordinary user."""
    if request.param == "nobody":
        namespace.as_nobody()
        namespace.user = None  # it enters the namespace first
        enter(namespace, NOBODY)
    return namespace


def ran(job: Job, body: str, *directives: str, **environment: str):
    job.script(body, *directives)
    done = job.run(**environment)
    assert done.returncode == 0, done.stderr
    return done


def listed(job: Job) -> list[dict]:
    done = job.command("persistent", "list", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_memory_allocation_is_created_shared_and_destroyed_without_a_store(anyone):
    job = anyone
    done = ran(job, f"echo one > $DW_JOB_STRIPED/a; cp $DW_JOB_STRIPED/a {STRIPED}/a", DW, CREATE, USE)
    assert "persistent allocation proj1 of 1.00 MiB made in /dev/shm" in done.stderr
    assert "warning: proj1 is in memory (/dev/shm): it is lost when this machine restarts" in done.stderr
    (one,) = listed(job)
    assert (one["state"], one["store"], one["in_memory"]) == ("ready", "/dev/shm", True)
    assert "/striped, in memory\n" in job.command("persistent", "show", "proj1").stdout
    # Each waits for what the other one writes; one has a view and memory of its own, one a disk's directory.
    both = []
    for own, other, where in (("x", "y", ()), ("y", "x", ("--store", job.store))):
        script = job.directory / f"{own}.sh"
        waits = WAIT.format(f"{STRIPED}/{other}")
        script.write_text(f"#!/bin/bash\n{DW}\n{USE}\ncat {STRIPED}/a > {STRIPED}/{own}; {waits}\n")
        both.append(job.forebay_starts("run", *where, script.name))
    for done in map(finished, both):
        assert done.returncode == 0, done.stderr
    out = f"#DW stage_out type=directory source={STRIPED}/ destination=%d/out"
    ran(job, "true", USE, out)
    texts = {path.name: path.read_text() for path in (job.directory / "out").iterdir()}
    assert texts == {"a": "one\n", "x": "one\n", "y": "one\n"}
    ran(job, "true", DESTROY)
    assert listed(job) == []
    assert job.allocations() == [] and list(job.temporary.iterdir()) == []


def test_memory_allocation_is_found_without_a_state_directory(namespace):
    job = namespace
    ran(job, "true", CREATE)
    other = job.directory.parent / "other-state"
    other.mkdir()
    assert ran(job, f"echo {STRIPED}", USE, FOREBAY_STATE=str(other)).stdout == (
        "/dev/shm/forebay-persistent-proj1/striped/\n"
    )
    ran(job, "true", DESTROY, FOREBAY_STATE=str(other))
    (one,) = listed(job)
    assert (one["state"], one["in_memory"]) == ("gone", True)


def test_memory_option_of_the_job_does_not_apply_to_persistent_allocations(namespace):
    job = namespace
    job.where = ["--store", "memory"]
    assert "made in /mnt/nvme" in ran(job, "true", CREATE, FOREBAY_STORE="/mnt/nvme").stderr
    done = ran(job, f"df --output=fstype $DW_JOB_STRIPED; echo {STRIPED}", DW, USE, FOREBAY_STORE="/mnt/nvme")
    assert done.stdout == "Type\ntmpfs\n/mnt/nvme/forebay-persistent-proj1/striped/\n"
    done = job.command("persistent", "list", "--json", "--store", "memory")
    assert [one["store"] for one in json.loads(done.stdout)] == ["/mnt/nvme"]


def test_own_allocation_precedes_that_of_another_user(namespace):
    job = namespace
    job.store.chmod(0o1777)
    ran(job, "true", CREATE)  # root's, in the memory that all share
    job.as_nobody()
    job.user = None
    enter(job, NOBODY)
    job.where = ["--store", job.store]
    ran(job, "true", CREATE)
    job.where = []
    own = f"{job.store}/forebay-persistent-proj1/striped/\n"
    assert ran(job, f"echo {STRIPED}", USE).stdout == own
    ran(job, "true", DESTROY)
    job.script("true", USE)
    done = job.run()
    assert done.returncode == 125 and "proj1 is root's, and closed to you" in done.stderr


def test_missing_own_allocation_is_not_replaced_by_that_of_another_user(namespace):
    job = namespace
    job.store.chmod(0o1777)
    done = job.command("persistent", "create", "proj1", "--capacity", "1MiB", "--mode", "0777")  # root's, open to all
    assert done.returncode == 0, done.stderr
    job.as_nobody()
    job.user = None
    enter(job, NOBODY)
    assert ran(job, f"echo {STRIPED}", USE).stdout.startswith("/dev/shm/")
    elsewhere = job.store.with_name("not mounted")
    # Made in a store that is then not there.
    job.where = ["--store", job.store]
    ran(job, "true", CREATE)
    job.store.rename(elsewhere)
    job.where = []
    job.script(f"touch {STRIPED}/mine", USE)
    done = job.run()
    assert done.returncode == 125 and f"it was made as {job.store}/forebay-persistent-proj1" in done.stderr
    # What is named is taken.
    job.where = ["--store", "/dev/shm"]
    assert ran(job, f"echo {STRIPED}", USE).stdout.startswith("/dev/shm/")
    elsewhere.rename(job.store)
    job.where = []
    assert ran(job, f"echo {STRIPED}", USE).stdout == f"{job.store}/forebay-persistent-proj1/striped/\n"


def test_events_that_remove_a_memory_allocation_are_named(namespace):
    """systemd removes what a user has in shared memory when he logs out; some schedulers, when the job ends."""
    job = namespace
    logout, scheduler = "also when you log out", "also with this job"
    said = ran(job, "true", CREATE).stderr
    assert logout not in said and scheduler not in said
    said = ran(job, "true", CREATE.replace("proj1", "proj2"), SLURM_JOB_ID="17").stderr
    assert logout not in said and scheduler in said
    job.as_nobody()
    job.user = None
    enter(job, NOBODY)
    assert logout in ran(job, "true", CREATE.replace("proj1", "proj3")).stderr


def test_memory_allocation_is_reported_lost_after_a_restart(namespace):
    job = namespace
    ran(job, "true", CREATE)
    restart = "umount /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm"
    subprocess.run(["nsenter", f"--mount=/proc/{job.inside[1]}/ns/mnt", "sh", "-c", restart], check=True)
    (one,) = listed(job)
    assert (one["persistent"], one["state"]) == ("proj1", "gone")
    job.script("true", USE)
    done = job.run()
    assert done.returncode == 125
    assert "is not there: it was made as /dev/shm/forebay-persistent-proj1" in done.stderr
    assert "it was in memory and is gone" in done.stderr
    assert job.command("persistent", "destroy", "proj1").returncode == 0
    assert listed(job) == []
