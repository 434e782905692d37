"""`forebay jobs` lists jobs with their state, and commands take `last` and parts of ids."""

import json
import os

import pytest

from support.job import DW, KILL, PROFILES


def jobs(job, *words) -> list[dict]:
    done = job.command("jobs", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def killed(job) -> str:
    """Runs a job whose `forebay run` is killed, without processes that are left. Returns its id."""
    target = job.store.parent / f"results{len(list(job.state.glob('*.json')))}"
    stage_out = f"#DW stage_out type=file source=$DW_JOB_STRIPED/a destination={target}"
    job.script("touch $DW_JOB_STRIPED/a; kill -KILL $PPID", DW, stage_out)
    assert job.run().returncode == -KILL
    return jobs(job)[0]["job_id"]


def test_jobs_are_listed_newest_first_with_their_state_and_next_step(job):
    job.script("exit 3", DW)
    assert job.run().returncode == 3
    left = killed(job)
    new, old = jobs(job)
    assert (new["job_id"], new["state"], new["next"]) == (left, "killed", f"forebay clean {left}")
    assert (old["state"], old["job_status"]) == ("ended", 3) and old["duration_s"] >= 0
    assert old["capacity_bytes"] and old["next"] == f"forebay why {old['job_id']}"
    assert [one["job_id"] for one in jobs(job, "--limit", "1")] == [left]
    text = job.command("jobs").stdout
    assert text.index(left) < text.index("ended with status 3")


def test_running_job_is_listed_as_running(job):
    job.script("touch wrote; sleep 300", DW)
    process = job.start()
    states = []
    job.stop_when(process, lambda: (job.directory / "wrote").exists() and (states.append(jobs(job)), True)[1], KILL)
    assert [(one["state"], one["next"]) for one in states[0]] == [("running", None)]
    (left,) = jobs(job)
    assert left["state"] == "killed" and left["next"] == f"forebay clean --kill {left['job_id']}"
    assert job.command("clean", "--kill", left["job_id"]).returncode == 0


def test_job_whose_stage_out_failed_is_listed_with_its_pending_files(job):
    results = job.store.parent / "results"
    stage_out = f"#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={results}"
    job.script(f"mkdir $DW_JOB_STRIPED/out; touch $DW_JOB_STRIPED/out/a {results}", DW, stage_out)
    done = job.run()
    (left,) = jobs(job)
    assert left["state"] == "not-staged-out" and left["pending_files"] == 1, (left, done.stderr)
    assert left["next"] == f"forebay clean {left['job_id']}"


def test_last_or_the_end_of_an_id_selects_a_job_and_clean_names_it(job):
    first, second = killed(job), killed(job)
    done = job.command("clean", "last")
    assert done.returncode == 0 and f"last is {second} (job.sh)" in done.stderr, done.stderr
    done = job.command("clean", first[-9:])
    assert done.returncode == 0 and f"{first[-9:]} is {first}" in done.stderr, done.stderr
    assert job.leaves_nothing() is None
    done = job.command("clean", "last")
    assert done.returncode == 1 and "nothing is left" in done.stderr


@pytest.mark.parametrize("flag", ["--discard", "--kill", "--overwrite-newer"])
def test_irreversible_commands_need_the_whole_id(job, flag):
    left = killed(job)
    for short in ("last", left[-6:]):
        done = job.command("clean", flag, short)
        assert done.returncode == 1 and f"hint: forebay clean {flag} {left}" in done.stderr, done.stderr
    assert jobs(job)[0]["state"] == "killed"
    assert job.command("clean", "--discard", left).returncode == 0


def test_short_id_deletes_no_allocation_that_stages_nothing_out(job):
    job.script("touch $DW_JOB_STRIPED/only_copy", DW)
    assert job.run("--keep").returncode == 0
    (kept,) = jobs(job)
    assert kept["state"] == "kept"
    for short in ("last", kept["job_id"][-6:]):
        assert job.command("clean", short).returncode == 1
        assert job.command("stage", "retry", short).returncode == 1
    assert [path for path in job.store.rglob("only_copy")]
    assert job.command("clean", kept["job_id"]).returncode == 0


def test_ambiguous_part_of_an_id_lists_the_candidates(job):
    both = [killed(job), killed(job)]
    done = job.command("clean", os.path.commonprefix(both))
    assert done.returncode == 1 and all(one in done.stderr for one in both), done.stderr
    assert len(jobs(job)) == 2


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "huge", "text", "other-id"])
def test_foreign_record_of_a_job_is_named_and_skipped(job, kind):
    job.script("true", DW)
    assert job.run().returncode == 0
    record = job.state / PROFILES / "9999999999999" / "job.json"
    record.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(record)
    elif kind == "link":
        record.symlink_to("/dev/zero")
    elif kind == "directory":
        record.mkdir()
    elif kind == "other-id":
        (good,) = (path for path in record.parents[1].glob("*/job.json") if path != record)
        record.write_text(good.read_text())
    else:
        record.write_text("no JSON\x1b[2J")
    if kind == "huge":
        os.truncate(record, 1 << 40)
    done = job.command("jobs", "--json")
    assert done.returncode == 0 and str(record.parent) in done.stderr and "\x1b" not in done.stderr
    assert len(json.loads(done.stdout)) == 1


def test_last_names_the_newest_staging(job):
    (job.directory / "in").write_text("in")
    started = [job.command("stage", "out", "--background", "in", f"out{number}") for number in range(2)]
    ids = [one.stdout.strip() for one in started]
    done = job.command("stage", "wait", "last", "--json")
    assert [one["id"] for one in json.loads(done.stdout)] == [max(ids)], done.stderr
    done = job.command("stage", "forget", min(ids)[-9:])
    assert done.returncode == 0 and f"is {min(ids)}" in done.stderr, done.stderr
