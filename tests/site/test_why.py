"""`forebay why JOBID` of a job with a burst buffer: its user learns what it waits for, from Slurm and `dwstat` alone."""

import json
import os

import pytest

from support.cgroup import of_process
from support.site_cluster import DW, MIB, SLOW, chown
from support.waiting import wait_until
from support.why import ask, need_python, why

LARGE = DW.replace("16MiB", "320MiB")
IN = "#DW stage_in type=file source=%d/big destination=$DW_JOB_STRIPED/big"
OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/big destination=%d/results/big"


@pytest.fixture(autouse=True, scope="module")
def python():
    need_python()


def big(batch, size):
    (batch.directory / "big").write_bytes(os.urandom(size))
    chown(batch.directory / "big", batch.user)


def test_job_without_space_is_told_how_much_and_who_has_it(slurm_site, users, others):
    users.script("sleep 600", LARGE)
    holder = users.submit("--time=10")
    users.wait(holder, "RUNNING")
    others.script("true", LARGE)
    waiting = others.submit()
    told = why(others, waiting, "waits for space")
    assert told["paragraph"].startswith(
        f"Job {waiting} of daemon needs 320 MiB of the pool flash, which has 64 MiB of 384 MiB free. "
        f"The largest allocations are {holder} of nobody (320 MiB, ends by "
    )
    assert told["next_step"] == "wait until one of them ends, or ask for less"
    assert "is running" in why(users, holder, "running")["paragraph"]
    slurm_site.control("drain", "flash")
    try:
        drained = why(others, waiting, "pool drained")
    finally:
        slurm_site.control("drain", "--undo", "flash")
    assert "gives no space of the pool flash to new jobs" in drained["paragraph"]
    text = ask(others, waiting)
    assert text.splitlines()[-1] == "Next: wait until one of them ends, or ask for less"
    users.run("scancel", holder)
    assert others.wait(waiting) == "COMPLETED"
    others.wait_until_freed(waiting)
    assert "its burst buffer is freed" in why(others, waiting, "ended")["paragraph"]


def test_job_beyond_user_max_is_told_the_limit_and_the_other_jobs(slurm_site, users):
    users.script("sleep 600", LARGE)
    holder = users.submit()
    users.wait(holder, "RUNNING")
    users.script("true", DW)
    waiting = users.submit()
    slurm_site.wait(lambda: (slurm_site.allocation(waiting) or {}).get("phase") == "waiting", users.log)
    told = why(users, waiting, "waits for space")
    assert "waits for 16 MiB: a user may have 320 MiB of the pool flash. " in told["paragraph"]
    assert f"The user's other allocations are {holder} of nobody (320 MiB" in told["paragraph"]


def test_progress_of_a_staging_and_its_silent_node_are_told(slurm_site, users):
    big(users, 28 * MIB)
    users.results.mkdir()
    chown(users.results, users.user)
    users.script("true", SLOW.replace("16MiB", "32MiB"), IN, OUT)
    job = users.submit()
    for direction in ("in", "out"):
        seen = []

        def copied(seen=seen, state=f"staging {direction}"):
            seen.append(why(users, job, state)["paragraph"])
            return "of 28 MiB in one file are copied" in seen[-1] and " 0 B of" not in seen[-1]

        slurm_site.wait(copied, lambda seen=seen: seen[-1])
        assert f"is staged {direction} on n1: " in seen[-1] and "%)." in seen[-1]
        if direction == "in":
            slurm_site.kill_noded("n1", hold=True)
            try:
                told = why(users, job, "waits for node")
            finally:
                slurm_site.release("n1")
            assert "waits for the node n1, which does not answer" in told["paragraph"]
            assert told["next_step"] == "tell the site: forebay-noded on n1 must run"
    users.wait_until_freed(job)


def test_held_job_is_told_the_error_and_the_remedy(slurm_site, users):
    users.script("true", DW, "#DW stage_in type=file source=%d/no-such destination=$DW_JOB_STRIPED/a")
    job = users.submit()
    told = why(users, job, "held")
    assert "no-such does not exist" in told["paragraph"] and f"Job {job} of nobody is held: " in told["paragraph"]
    assert told["next_step"].endswith(f"scancel {job}, and submit the job again")
    users.script("true", DW + " pool=members")
    told = why(users, users.submit(), "held")
    assert "nobody may not use the pool members" in told["paragraph"]
    assert told["next_step"].startswith("name another one with pool=, or ask the site; then scancel ")


@pytest.mark.soak
def test_undelivered_results_are_told_with_their_directory(slurm_site, users):
    users.results.mkdir()
    users.results.chmod(0o755)  # root's
    users.script("echo a > $DW_JOB_STRIPED/big", DW, OUT)
    job = users.submit()
    told = why(users, job, "kept")
    assert "Permission denied" in told["paragraph"] and "kept in" in told["next_step"]
    # An administrator sees Forebay's own error even while Slurm shows none.
    with_retries = slurm_site.top / "site-with-retries.toml"
    with_retries.write_text((slurm_site.top / "site.toml").read_text().replace('"2s"', '"600s"'))
    call = ("--function", "data_out", "--token", job, "--job", "/dev/null")
    trying = slurm_site.start_call(*call, site=with_retries)
    try:
        state = slurm_site.allocation(job)
        assert state["phase"] == "staging-out"

        def fails_again():
            said = slurm_site.run(["scontrol", "show", "bbstat", "why", job]).stdout
            staging = json.loads(said)["allocation"]["staging"]
            return staging and any(node["failures"] >= 2 for node in staging["nodes"])

        slurm_site.wait(fails_again, users.log)
        said = slurm_site.run(["scontrol", "show", "bbstat", "why", job], user=users.user).stdout
        assert "Permission denied" not in said and str(users.results) not in said
    finally:
        trying.kill()
        trying.wait()


@pytest.mark.parametrize("word", ["12", "nothing"])
def test_bbstat_answers_also_for_unknown_jobs(slurm_site, word):
    said = slurm_site.run(["scontrol", "show", "bbstat", "why", word]).stdout
    assert json.loads(said)["allocation"] is None, said


def test_staging_that_does_nothing_loses_its_place_and_is_named(slurm_site, users):
    """As one whose file system hangs."""
    daemons = slurm_site.cgroup("n1")
    big(users, 60 * MIB)
    users.script("true", SLOW.replace("16MiB", "64MiB"), IN)
    job = users.submit()
    found = []

    def is_staging():
        state = slurm_site.allocation(job)
        if state and state["phase"] == "staging-in":
            found.extend(slurm_site.processes("/proc/self/exe", "__site"))
        return found

    wait_until(is_staging, what="staging")
    group = daemons / "forebay-noded.n1" / of_process(found[0]).name
    (group / "cgroup.freeze").write_text("1")
    told = why(users, job, "held")
    assert "its process did nothing for 5 s" in told["paragraph"]
    assert "which file system hangs" in told["next_step"]
    assert not group.exists()
