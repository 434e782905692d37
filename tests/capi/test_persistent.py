"""What programs ask of a persistent namespace that their job uses."""

import errno
import json
import os
import re

import pytest
from support.job import DW, KILL
from support.strace import has_ended, inject_between
from support.persistent import STRIPED, USE, listed, made, assert_job_allocations_removed, root
from support.trees import traced_calls
from support.waiting import wait_until

INVALID = str(-errno.EINVAL)
P = f"P={STRIPED}"


def destroyed(job):
    return job.command("persistent", "destroy", "proj1")


def test_persistent_files_are_staged_both_ways_immediate_and_deferred(asking):
    made(asking.job)
    made(asking.job, "other")
    (asking.pfs / "in").write_text("input\n")
    said = asking.output_lines(
        f"{P}; echo result > $P/f; ask out $P/f pfs/now now; ask wait $P/f; cat pfs/now\n"
        "ask in $P/g pfs/in; ask wait $P/g; cat $P/g\n"
        "mkdir $P/d; echo deep > $P/d/e; ask out-directory $P/d pfs end; ask query $P/d/e; ask failed $P\n"
        "ask out $P/f $P/copy now; ask out-directory $P/d $P now\n"
        "other=${P%/}/../../forebay-persistent-other/striped; echo > $other/x; ask out $other/x pfs/x now",
        "--json",
        "--output",
        "said",
        directives=[USE],
    )
    account = json.loads("\n".join(said))
    said = (asking.job.directory / "said").read_text().splitlines()
    assert said == ["0", "0", "result", "0", "0", "input", "0", "0 0 0 1 0", "0", INVALID, INVALID, INVALID]
    assert (asking.pfs / "e").read_text() == "deep\n"
    assert sorted(path.name for path in asking.pfs.iterdir()) == ["e", "in", "now"]
    assert (account["requested"]["files_in"], account["requested"]["files_out"]) == (1, 1)
    assert_job_allocations_removed(asking.job, "proj1", "other")


@pytest.mark.parametrize(("place", "is_synced"), [("$P", True), ("$S", False)])
def test_requested_stage_in_to_persistent_allocation_is_synced(asking, place, is_synced):
    made(asking.job)
    (asking.pfs / "in").write_text("input\n")
    asking.script(f"{P}; ask in {place}/f pfs/in; ask wait {place}/f; cat {place}/f", USE)
    lines, done = traced_calls(asking.job, "fsync,rename", "run", *asking.job.where, "job.sh")
    assert done.stdout.splitlines() == ["0", "0", "input"], done.stderr
    assert [line for line in lines if re.search(r'rename\(".*\.part", ".*/f"', line)]
    assert bool([line for line in lines if re.search(r"fsync\(.*\.part>", line)]) == is_synced


def test_failed_request_prevents_destroy(asking):
    job = asking.job
    made(job)
    spoiled = "mkdir pfs/d; ask out $P/f pfs/d/f end; rmdir pfs/d; echo > pfs/d"
    assert asking.output_lines(f"{P}; echo f > $P/f; {spoiled}", directives=[USE], status=123) == ["0"]
    refused = destroyed(job)
    assert refused.returncode == 1 and "holds what is to be staged out yet: job" in refused.stderr
    (asking.pfs / "d").unlink()
    (asking.pfs / "d").mkdir()
    cleaned = job.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (asking.pfs / "d" / "f").read_text() == "f\n"
    assert_job_allocations_removed(job, "proj1")
    assert destroyed(job).returncode == 0


@pytest.mark.parametrize("where", ["directory", "memory"])
def test_killed_job_requests_are_staged_out_before_destroy(asking, where):
    job = asking.job
    made(job)
    if where == "memory":
        job.in_memory()
    asking.script(f"{P}; echo f > $P/f; ask out $P/f pfs/f end; touch asked; sleep 600", USE)
    job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
    in_use = destroyed(job)
    assert in_use.returncode == 1 and "proj1 is in use: job" in in_use.stderr
    (one,) = listed(job)["proj1"]["jobs"]
    assert one["stages_out"] and one["state"] == "killed"
    cleaned = job.command("clean", "--kill")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (asking.pfs / "f").read_text() == "f\n"
    assert destroyed(job).returncode == 0
    assert_job_allocations_removed(job)


def test_requests_lost_with_job_memory_prevent_destroy(asking):
    job = asking.job
    made(job)
    where = job.where
    job.in_memory()
    asking.script(f"{P}; echo f > $P/f; ask out $P/f pfs/f end; touch asked; exec sleep 600", USE)
    job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
    (line, _) = json.loads(job.command("status", "--json").stdout)
    keeper = job.keeper()
    killed = [keeper, *line["processes"]]
    for process in killed:
        os.kill(process, KILL)
    wait_until(lambda: all(map(has_ended, killed)))
    job.where = where
    lost = job.command("clean", "--kill", line["job_id"])
    assert lost.returncode == 1 and "went with the job's memory" in lost.stderr, lost.stderr
    assert job.command("clean").returncode == 1
    assert destroyed(job).returncode == 1
    assert (root(job) / "striped" / "f").read_text() == "f\n"
    assert job.command("clean", "--discard", line["job_id"]).returncode == 0
    assert destroyed(job).returncode == 0
    assert_job_allocations_removed(job)


def test_requests_lost_with_the_memory_during_clean_prevent_destroy(asking):
    job = asking.job
    made(job)
    where = job.where
    asking.script(f"{P}; echo f > $P/f; ask out $P/f pfs/f end; touch asked; exec sleep 600", USE)
    ended, number = set(), 1
    while None not in ended:
        for path in (job.directory / "asked", asking.pfs / "f"):
            path.unlink(missing_ok=True)
        job.in_memory()
        job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
        job.where = where
        keeper = job.keeper()

        def dies():
            os.kill(keeper, KILL)
            wait_until(lambda: has_ended(keeper))

        ((id,),) = (path.name.split("-")[:1] for path in job.state.glob("*.json"))
        code = inject_between(job, "openat", number, f"/proc/{keeper}/stat", dies, "clean", "--kill", id)
        has_arrived = (asking.pfs / "f").exists()
        assert (code, has_arrived) in ((None, True), (0, True), (1, False)), number
        if not has_arrived:
            assert destroyed(job).returncode == 1
            assert job.command("clean", "--discard", "--kill").returncode == 0
        ended.add(code)
        number += 1
    assert ended == {None, 0, 1}
    assert_job_allocations_removed(job, "proj1")


def test_requests_are_kept_while_their_store_is_not_mounted(asking):
    job = asking.job
    made(job)
    asking.script(f"{P}; echo f > $P/f; ask out $P/f pfs/f end; touch asked; exec sleep 600", USE)
    job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
    away = root(job).rename(job.store.parent / "away")
    refused = job.command("clean", "--kill")
    assert refused.returncode == 123 and "is its file system mounted?" in refused.stderr, refused.stderr
    away.rename(root(job))
    cleaned = job.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (asking.pfs / "f").read_text() == "f\n"
    assert_job_allocations_removed(job, "proj1")


def without_striped_namespace(asking, body, access):
    """A job whose only striped namespace is persistent."""
    own = [DW.replace("striped", access)] if access else []
    head = f'PATH={asking.programs}:$PATH; cd "$SLURM_SUBMIT_DIR"; {P}'
    asking.job.script(f"{head}\n{body}", *own, USE)


@pytest.mark.parametrize("access", ["", "private"])
def test_job_with_a_persistent_namespace_alone_stages_at_request(asking, access):
    job = asking.job
    made(job)
    (asking.pfs / "in").write_text("input\n")
    without_striped_namespace(
        asking,
        "echo 1 > $P/f; ask out $P/f pfs/f now; ask wait $P/f; ask in $P/g pfs/in; ask wait $P/g; cat $P/g\n"
        "mkdir pfs/d; ask out $P/g pfs/d/late end; ask query $P/g; ask accounting $P | cut -d ' ' -f 1\n"
        "rmdir pfs/d; touch pfs/d",
        access,
    )
    done = job.run()
    assert done.stdout.splitlines() == ["0", "0", "0", "0", "input", "0", "0 0 0 1 0", "0"], done.stderr
    assert done.returncode == 123 and (asking.pfs / "f").read_text() == "1\n"
    assert destroyed(job).returncode == 1
    (asking.pfs / "d").unlink()
    cleaned = job.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (asking.pfs / "d" / "late").read_text() == "input\n"
    assert_job_allocations_removed(job, "proj1")
    assert destroyed(job).returncode == 0


def test_killed_job_with_a_persistent_namespace_alone_is_staged_out(asking):
    job = asking.job
    made(job)
    without_striped_namespace(asking, "echo 1 > $P/f; ask out $P/f pfs/f end; touch asked; sleep 600", "")
    job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
    (line, _) = json.loads(job.command("status", "--json").stdout)
    assert line["undrained"]
    cleaned = job.command("clean", "--kill")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (asking.pfs / "f").read_text() == "1\n"
    assert_job_allocations_removed(job, "proj1")
    without_striped_namespace(asking, "echo 2 > $P/f; ask out $P/f pfs/f end", "")
    done = job.run()
    assert done.returncode == 0 and (asking.pfs / "f").read_text() == "2\n", done.stderr
    assert_job_allocations_removed(job, "proj1")
