"""What a killed run leaves is named, can be drained, and can be thrown away; nothing else is deleted."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from support.job import DW, INTERRUPT, KILL, finished
from support.leftovers import BODY, STAGE_OUT, killed_while_it_runs, status, when_the_job_has_ended
from support.slow_model import MODEL
from support.strace import has_ended
from support.waiting import wait_until
from support.trees import named

MIB = 1 << 20
STAGE_IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/input"
ROOMY = DW.replace("64MiB", "256MiB")


@pytest.fixture(params=["directory", "memory of root", "memory of nobody"])
def any_store(job, request):
    if os.getuid() != 0 and "memory" in request.param:
        pytest.skip("only root can be both")
    if "memory" in request.param:
        job.in_memory()
    if "nobody" in request.param:
        job.as_nobody()
    return job


def test_leftover_of_a_killed_run_is_named_and_drained_by_clean(any_store):
    job = any_store
    shown = killed_while_it_runs(job)
    assert (shown["state"], shown["phase"], shown["undrained"]) == ("left", "running", True)
    assert shown["processes"] and shown["script"] == "job.sh"
    when_the_job_has_ended(job)
    data = pathlib.Path(shown["data"])
    assert (data / "striped" / "out" / "x").read_text() == "result\n"
    job.script("true")
    assert f"job {shown['job_id']} (job.sh) was killed before its end" in job.run().stderr
    assert shown["job_id"] in job.command("status").stdout
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    assert status(job) == []
    job.leaves_nothing()


def test_running_job_is_cleaned_only_on_request(any_store):
    job = any_store
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (shown,) = status(job)
    done = job.command("clean")
    assert done.returncode == 1 and "still alive" in done.stderr and "--kill" in done.stderr
    # The `sleep` that `status` saw may have ended since: its shell has not.
    alive = {str(process) for process in shown["processes"]} & set(done.stderr.split())
    assert alive and not (job.directory / "results").exists(), (shown, done.stderr)
    done = job.command("clean", "--kill", "--json")
    cleaned = json.loads(done.stdout)
    assert done.returncode == 0 and cleaned["removed"] and cleaned["stage_out"]["files"] == 1, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


def test_discard_deletes_without_staging_out(any_store):
    job = any_store
    killed_while_it_runs(job)
    when_the_job_has_ended(job)
    done = job.command("clean", "--discard")
    assert done.returncode == 0 and not (job.directory / "results").exists(), done.stderr
    job.leaves_nothing()


def test_leftover_that_cannot_be_drained_is_kept(any_store):
    job = any_store
    shown = killed_while_it_runs(job)
    (job.directory / "results").write_text("a file is in the way")
    when_the_job_has_ended(job)
    done = job.command("clean")
    assert done.returncode == 123 and "nothing was removed" in done.stderr and shown["data"] in done.stderr
    (job.directory / "results").unlink()
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


def test_undeliverable_files_are_dropped_by_following_the_hints(job):
    job.script("true", DW, "#DW stage_out type=file source=$DW_JOB_STRIPED/nothere destination=%d/result")
    done = job.run("--json")
    id = json.loads(done.stdout)["run_id"]
    assert done.returncode == 123 and f"forebay clean {id} stages out what is missing" in done.stderr
    assert "with --discard it gives them up" in done.stderr
    done = job.command("clean", id)
    assert done.returncode == 123 and f"give up the missing files: forebay clean {id} --discard" in done.stderr, (
        done.stderr
    )
    assert job.command("clean", id, "--discard").returncode == 0
    job.leaves_nothing()


def test_kept_job_is_removed_only_by_name_or_discard(any_store):
    job = any_store
    (job.directory / "go").touch()
    job.script(BODY, DW, STAGE_OUT)
    done = job.run("--keep", "--json")
    account = json.loads(done.stdout)
    assert done.returncode == 0 and "the allocation is kept" in done.stderr
    kept = pathlib.Path(account["kept"])
    assert (kept / "striped" / "out" / "x").read_text() == "result\n" and not account["undelivered"]
    assert (job.directory / "results" / "x").exists()
    (shown,) = status(job)
    assert (shown["state"], shown["undrained"], shown["data"]) == ("kept", False, str(kept))
    assert "left data behind" not in job.run().stderr
    done = job.command("clean")
    assert done.returncode == 0 and "is left alone" in done.stderr and kept.exists()
    assert job.command("clean", shown["job_id"]).returncode == 0 and not kept.exists()
    job.leaves_nothing()


@pytest.fixture
def slow(any_store):
    model = any_store.directory.parent / "slow.toml"
    model.write_text(MODEL)
    return ["--pfs-model", str(model)]


def half_files(directory: pathlib.Path) -> list[pathlib.Path]:
    return named(directory, "*.part")


def test_job_killed_in_stage_in_has_nothing_to_drain(any_store, slow):
    job = any_store
    (job.directory / "input").mkdir()
    (job.directory / "input" / "x").write_bytes(bytes(96 * MIB))
    job.script("touch started", ROOMY, STAGE_IN, STAGE_OUT)
    process = job.start(*slow)

    def staging():
        return any(half_files(pathlib.Path(shown["data"])) for shown in status(job) if shown["data"])

    job.stop_when(process, staging, KILL)
    (shown,) = status(job)
    assert (shown["phase"], shown["undrained"]) == ("preparing", False)
    assert job.command("clean").returncode == 0
    assert not (job.directory / "started").exists() and not (job.directory / "results").exists()
    assert not list(pathlib.Path("/dev/shm").glob(f"forebay-pfs-{process.pid}-*"))
    job.leaves_nothing()


def killed_in_stage_out(job, slow):
    job.script("mkdir $DW_JOB_STRIPED/out; head -c 96M /dev/zero > $DW_JOB_STRIPED/out/x", ROOMY, STAGE_OUT)
    process = job.start(*slow)
    wait_until(lambda: half_files(job.directory), process=process)
    process.kill()
    process.communicate()
    return process


def test_clean_completes_a_killed_stage_out_and_removes_partial_files(any_store, slow):
    job = any_store
    process = killed_in_stage_out(job, slow)
    assert half_files(job.directory)
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").stat().st_size == 96 * MIB
    assert half_files(job.directory) == []
    assert not list(pathlib.Path("/dev/shm").glob(f"forebay-pfs-{process.pid}-*"))
    job.leaves_nothing()


def test_clean_leaves_no_partial_file_of_a_source_that_was_renamed(job):
    model = job.directory.parent / "slow.toml"
    model.write_text(MODEL)
    killed_in_stage_out(job, ["--pfs-model", str(model)])
    (allocation,) = job.allocations()
    (allocation / "striped" / "out" / "x").rename(allocation / "striped" / "out" / "y")
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert half_files(job.directory) == [] and (job.directory / "results" / "y").stat().st_size == 96 * MIB
    job.leaves_nothing()


@pytest.mark.parametrize("number", [INTERRUPT, KILL])
def test_interrupted_clean_can_be_repeated(any_store, number):
    job = any_store
    many = "mkdir $DW_JOB_STRIPED/out; for i in {1..1000}; do echo $i > $DW_JOB_STRIPED/out/$i; done; touch wrote; until [ -e go ]; do sleep 0.01; done"
    job.script(many, ROOMY, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    cleaning = job.forebay_starts("clean", "--stage-rate", "500")
    results = job.directory / "results"
    wait_until(lambda: results.exists() and any(results.iterdir()), process=cleaning)
    cleaning.send_signal(number)
    done = finished(cleaning)
    assert done.returncode == (-signal.SIGKILL if number == KILL else 123), done.stderr
    (shown,) = status(job)
    assert shown["undrained"]
    done = job.command("clean", "--stage-rate", "1TB/s")
    assert done.returncode == 0, done.stderr
    assert {int(path.name) for path in results.iterdir()} == set(range(1, 1001))
    assert all(path.read_text() == f"{path.name}\n" for path in results.iterdir())
    job.leaves_nothing()


def test_several_leftovers_in_their_own_views_are_cleaned(any_store):
    job = any_store
    for number in (1, 2):
        (job.directory / "wrote").unlink(missing_ok=True)
        (job.directory / "go").unlink(missing_ok=True)
        job.script(
            BODY.replace("out", f"out{number}"),
            DW,
            STAGE_OUT.replace("/out ", f"/out{number} ").replace("results", f"results{number}"),
        )
        process = job.start()
        job.stop_when(process, (job.directory / "wrote").exists, KILL)
    assert len(status(job)) == 2
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert [(job.directory / f"results{n}" / "x").read_text() for n in (1, 2)] == ["result\n"] * 2
    job.leaves_nothing()


def test_running_run_is_never_cleaned(any_store):
    job = any_store
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    wait_until((job.directory / "wrote").exists, process=process)
    (shown,) = status(job)
    assert shown["state"] == "running"
    assert job.command("clean").returncode == 0
    done = job.command("clean", "--discard", "--kill", shown["job_id"])
    assert done.returncode == 1 and "is running" in done.stderr
    (job.directory / "go").touch()
    assert finished(process).returncode == 0
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()


def test_leftover_of_another_machine_is_not_cleaned(job):
    killed_while_it_runs(job)
    when_the_job_has_ended(job)
    (path,) = job.state.glob("*.json")
    own = path.read_text()
    path.write_text(json.dumps(json.loads(own) | {"host": "elsewhere.example", "boot_id": "another"}))
    (shown,) = status(job)
    assert shown["state"] == "elsewhere" and shown["data"] is None
    done = job.command("clean", shown["job_id"])
    assert done.returncode == 1 and "elsewhere.example" in done.stderr and job.allocations()
    assert job.command("clean").returncode == 0 and path.exists()
    done = job.command("clean", "--discard", "--json", shown["job_id"])
    assert done.returncode == 0 and "forgotten; nothing was removed" in done.stderr, done.stderr
    cleaned = json.loads(done.stdout)
    assert (cleaned["removed"], cleaned["deleted_files"]) == (False, None)
    assert job.allocations() and not path.exists()
    path.write_text(own)
    assert job.command("clean").returncode == 0
    job.leaves_nothing()


def test_gather_names_a_job_of_another_machine_with_possible_requests(job):
    job.in_memory()
    job.script(BODY, DW)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    here = job.command("gather")
    assert here.returncode == 0 and here.stdout == "nothing is left on any node\n", here.stderr
    (path,) = job.state.glob("*.json")
    own = path.read_text()
    id = json.loads(own)["id"]
    there = {"host": "elsewhere.example", "boot_id": "another"}
    path.write_text(json.dumps(json.loads(own) | there))
    done = job.command("gather", "--nodes", "elsewhere.example")
    assert done.returncode == 1 and "nothing is left" not in done.stdout + done.stderr
    assert f"error: elsewhere.example: job {id} may hold what its programs asked for" in done.stderr
    assert f"hint: run forebay clean {id} there" in done.stderr
    (told,) = json.loads(job.command("gather", "--json").stdout)
    assert (told["node"], told["unknown"]) == ("elsewhere.example", [id])
    for settled in ({"phase": "preparing"}, {"keep": True}):
        path.write_text(json.dumps(json.loads(own) | there | settled))
        assert job.command("gather").stdout == "nothing is left on any node\n"
    path.write_text(own)
    assert job.command("clean", id).returncode == 0
    job.leaves_nothing()


def test_unreadable_record_is_named_and_stops_nothing(job):
    broken = job.state / "1.json"
    broken.write_text("{")
    job.script("echo ran", DW)
    assert job.run().stdout == "ran\n"
    for command in ("status", "clean"):
        done = job.command(command)
        assert done.returncode == 0 and f"cannot read {broken}" in done.stderr
    assert job.command("clean", "17").returncode == 1
    broken.unlink()
    job.leaves_nothing()


def test_job_of_another_container_is_not_cleaned(job):
    if os.getuid() != 0:
        pytest.skip("only root can make a namespace of process numbers")
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    wait_until((job.directory / "wrote").exists, process=process)
    inside = ["unshare", "--pid", "--fork", "--mount-proc", job.forebay, "clean", "--kill"]
    done = subprocess.run(inside, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (job.directory / "go").touch()
    ended = finished(process)
    assert ended.returncode == 0 and (job.directory / "results" / "x").exists(), ended.stderr
    job.leaves_nothing()


def test_job_that_stages_nothing_out_is_removed_only_by_its_name(any_store):
    job = any_store
    job.script(BODY, DW)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    (shown,) = status(job)
    done = job.command("clean")
    assert done.returncode == 0 and "stages nothing out" in done.stderr
    assert (pathlib.Path(shown["data"]) / "striped" / "out" / "x").read_text() == "result\n"
    assert job.command("clean", shown["job_id"]).returncode == 0
    job.leaves_nothing()


def test_keep_applies_to_a_killed_run(any_store):
    job = any_store
    job.script(BODY, DW, STAGE_OUT)
    process = job.start("--keep")
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    assert job.command("clean").returncode == 0
    (shown,) = status(job)
    assert (pathlib.Path(shown["data"]) / "striped" / "out" / "x").exists()
    assert job.command("clean", shown["job_id"]).returncode == 0
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()


def test_writer_without_the_job_variable_is_found(any_store):
    job = any_store
    (job.directory / "writer.sh").write_text(
        'cd "$1"; exec 3>>out/late; touch "$2/wrote"; until [ -e "$2/go" ]; do sleep 0.01; done; echo late >&3\n'
    )
    job.script('mkdir $DW_JOB_STRIPED/out; env -i /bin/bash writer.sh $DW_JOB_STRIPED "$PWD"', DW, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (shown,) = status(job)
    for pid in shown["processes"]:  # the script itself, but not the one that writes, nor its short-lived children
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if "FOREBAY_RUN" in pathlib.Path(f"/proc/{pid}/environ").read_text():
                os.kill(pid, KILL)
    done = job.command("clean")
    assert done.returncode == 1 and "still alive" in done.stderr, done.stderr
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / "late").read_text() == "late\n"
    job.leaves_nothing()


def test_missing_store_is_kept_on_record(job):
    shown = killed_while_it_runs(job)
    when_the_job_has_ended(job)
    away = job.store.with_name("away")
    job.store.rename(away)
    job.store.mkdir()
    (there,) = status(job)
    assert there["state"] == "unreachable" and there["data"] == shown["data"]
    done = job.command("clean")
    assert done.returncode == 0 and "is its file system mounted?" in done.stderr
    done = job.command("clean", shown["job_id"])
    assert done.returncode == 1 and "is not there" in done.stderr
    job.store.rmdir()
    away.rename(job.store)
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()


def test_files_for_a_mapped_destination_are_not_staged_elsewhere(job):
    mapped = job.directory.parent / "mapped"
    mapped.mkdir()
    job.where += ["--map", f"/gpfs-of-tests={mapped}"]
    job.script(BODY, DW, STAGE_OUT.replace("%d", "/gpfs-of-tests"))
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    (record,) = [json.loads(path.read_text()) for path in job.state.glob("*.json")]
    os.kill(record["keeper"]["pid"], KILL)
    wait_until(lambda: has_ended(record["keeper"]["pid"]))
    done = job.command("clean")
    assert done.returncode == 1 and "the view in which the job ran is gone" in done.stderr
    assert not pathlib.Path("/gpfs-of-tests").exists() and job.allocations()
    assert job.command("clean", "--discard").returncode == 0
    job.leaves_nothing()


def test_kept_nested_job_outlives_the_outer_job(any_store):
    job = any_store
    (job.directory / "inner.sh").write_text(f"#!/bin/bash\n{DW}\necho kept > $DW_JOB_STRIPED/x\n")
    where = " ".join(map(str, job.where))
    job.script(f"{job.forebay} run {where} --keep inner.sh")
    done = job.run()
    assert done.returncode == 0, done.stderr
    (shown,) = status(job)
    assert shown["state"] == "kept" and (pathlib.Path(shown["data"]) / "striped" / "x").read_text() == "kept\n"
    assert job.command("clean", shown["job_id"]).returncode == 0
    job.leaves_nothing()


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_unwritable_record_at_the_job_end_loses_no_data(job, store):
    if os.getuid() == 0:  # nothing is closed to root
        job.as_nobody()
    if store == "memory":
        job.in_memory()
    (job.directory / "go").touch()
    job.script(BODY + "; chmod 500 $FOREBAY_STATE", DW, STAGE_OUT)
    done = job.run("--keep")
    assert done.returncode == 0 and "warning: " in done.stderr, done.stderr
    job.state.chmod(0o700)
    (shown,) = status(job)
    assert (pathlib.Path(shown["data"]) / "striped" / "out" / "x").exists()
    assert job.command("clean", shown["job_id"]).returncode == 0
    job.leaves_nothing()


def test_jobs_are_not_judged_from_another_user_namespace(job):
    job.as_nobody()
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    inside = subprocess.run(
        ["unshare", "--user", "--map-current-user", job.forebay, "clean", "--discard"],
        cwd=job.directory, env=job.environment(), capture_output=True, text=True, user=job.user, group=job.user,
        extra_groups=None if job.user is None else [],
    )  # fmt: skip
    assert inside.returncode == 0 and job.allocations() and status(job)[0]["state"] == "left", inside.stderr
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()


def test_processes_of_a_nested_job_count_for_both_jobs(any_store):
    job = any_store
    (job.directory / "inner.sh").write_text(
        f'#!/bin/bash\n{DW}\ntouch "$PWD/wrote"; until [ -e "$PWD/go" ]; do sleep 0.01; done; echo late > $OUTER/out/late\n'
    )
    where = " ".join(map(str, job.where))
    job.script(
        f"mkdir $DW_JOB_STRIPED/out; export OUTER=$DW_JOB_STRIPED; {job.forebay} run {where} inner.sh & sleep 300",
        DW,
        STAGE_OUT,
    )
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    outer, inner = status(job)
    assert (outer["state"], inner["state"]) == ("left", "running") and outer["processes"]
    for pid in outer["processes"]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "300" in words or any(word.endswith("/script/job.sh") for word in words):
                os.kill(pid, KILL)  # what is the outer job's own
    done = job.command("clean", outer["job_id"])
    assert done.returncode == 1 and "still alive" in done.stderr, done.stderr
    (job.directory / "go").touch()
    when_the_job_has_ended(job)
    assert job.command("clean", outer["job_id"]).returncode == 0
    assert (job.directory / "results" / "late").read_text() == "late\n"
    job.leaves_nothing()


@pytest.fixture
def small_state(job):
    """A state directory that takes the record of a job, and nothing more once the job has filled it."""
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", job.state], check=True)
    yield job
    job.command("clean", "--discard")  # a keeper that a failed test leaves
    subprocess.run(["umount", job.state], check=True)


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_journal_in_the_allocation_is_found_and_discard_lists_what_it_drops(small_state, store):
    job = small_state
    if store == "memory":
        job.in_memory()
    fill = "cat /dev/zero > $FOREBAY_STATE/fill 2> /dev/null"
    job.script(f"mkdir $DW_JOB_STRIPED/out; echo 12345 > $DW_JOB_STRIPED/out/x; {fill}; true", DW, STAGE_OUT)
    (job.directory / "results").mkdir()
    (job.directory / "results" / "x").mkdir()  # in the way
    done = job.run()
    assert done.returncode == 123, done.stderr
    (job.state / "fill").unlink()
    (shown,) = status(job)
    assert (shown["undrained"], shown["missing_files"], shown["missing_bytes"]) == (True, 1, 6)
    assert shown["failures"][0][0].endswith("out/x") and "a directory stands at its place" in shown["failures"][0][1]
    cleaned = job.command("clean", "--discard", "--json", shown["job_id"])
    assert cleaned.returncode == 0, cleaned.stderr
    told = json.loads(cleaned.stdout)
    assert (told["removed"], told["discarded_files"], told["discarded_bytes"]) == (True, 1, 6)
    assert "; not staged out: 1 file, 6 B" in cleaned.stderr
    job.leaves_nothing()


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_mount_left_in_the_allocation_keeps_its_files(job, store):
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    if store == "memory":
        job.in_memory()
    victim = job.directory / "victim"
    victim.mkdir()
    (victim / "x").write_text("of others\n")
    one_file = "#DW stage_out type=file source=$DW_JOB_STRIPED/r destination=%d/r"
    job.script('cd $DW_JOB_STRIPED; echo result > r; mkdir m; mount --bind "$OLDPWD/victim" m', DW, one_file)
    done = job.run()
    assert done.returncode == 0 and (job.directory / "r").read_text() == "result\n", done.stderr
    assert (victim / "x").read_text() == "of others\n"
    if store == "directory":
        (allocation,) = job.allocations()
        said = f"cannot remove {allocation}: something is mounted at {allocation}/striped/m, unmount it first"
        assert said in done.stderr, done.stderr
        for words in (["clean"], ["clean", "--discard"]):
            cleaned = job.command(*words)
            assert cleaned.returncode == 1 and said in cleaned.stderr, cleaned.stderr
        assert (victim / "x").exists() and (allocation / "striped" / "r").exists()
        subprocess.run(["umount", allocation / "striped" / "m"], check=True)
        assert job.command("clean").returncode == 0
    job.leaves_nothing()


def test_job_that_was_not_killed_is_not_called_killed(job):
    job.script("true", DW, "#DW stage_out type=file source=$DW_JOB_STRIPED/nothere destination=%d/result")
    assert job.run().returncode == 123
    id = job.record()["id"]
    job.script("true")
    said = job.run().stderr
    assert f"job {id} (job.sh) has data that did not arrive" in said and "killed" not in said
    assert job.command("clean", id, "--discard").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
@pytest.mark.parametrize("asked", ["file", "list", "request"])
def test_results_are_not_staged_to_a_file_system_only_the_view_has(build, job, asked):
    job.in_memory()
    target = job.directory.parent / "target"
    target.mkdir()
    mounted = ["mount", "--make-private", "-t", "tmpfs", "tmpfs", target]
    subprocess.run(mounted, check=True)
    try:
        (job.directory / "list").write_text(f"$DW_JOB_STRIPED/a {target}/a\n")
        lines = {
            "file": "#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=%d/../target/a",
            "list": "#DW stage_out type=list source=%d/list",
        }
        library, path = build / "lib" / "libdatawarp.so", "os.environ['DW_JOB_STRIPED'].encode() + b'a'"
        call = f"ctypes.CDLL('{library}').dw_stage_file_out({path}, b'{target}/a', 1)"
        request = f'python3 -c "import ctypes, os; assert {call} == 0"; ' if asked == "request" else ""
        body = f'echo result > "$DW_JOB_STRIPED/a"; {request}touch reached; exec sleep 300'
        job.script(body, DW, *([lines[asked]] if asked in lines else []))
        process = job.start()
        wait_until(lambda: (job.directory / "reached").exists())
        process.kill()
        process.wait()
        id = job.record()["id"]
        subprocess.run(["umount", target], check=True)
        subprocess.run(mounted, check=True)
        done = job.command("clean", id, "--kill")
        if done.returncode == 0:  # the unmounting has reached the view
            assert (target / "a").read_text() == "result\n"
        else:
            assert "was unmounted since the job began" in done.stderr, done.stderr
            rescued = job.command("stage", "out", "--job", id, "a", f"{target}/")
            assert rescued.returncode == 0, rescued.stderr
            assert (target / "a").read_text() == "result\n"
            assert job.command("clean", id, "--discard").returncode == 0
        assert job.keepers() == [] and job.allocations() == []
    finally:
        subprocess.run(["umount", target], check=True)
