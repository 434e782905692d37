"""What another user of the machine could have made, in place of Forebay's own files, is named and passed over."""

import json
import os
import subprocess

import pytest

from support.strace import few
from support.job import DW, KILL, NOBODY
from support.persistent import CREATE, USE, listed, made, root

KINDS = ["fifo", "link", "directory", "huge", "truncated", "text", "owner"]
ANSWER_S_MAX = 300


def put(path, kind):
    """Makes what a user would make there who wants to harm the next one."""
    if kind == "owner" and os.getuid() != 0:
        pytest.skip("only root can give a file away")
    if path.exists():
        path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_text({"truncated": '{"id": "1', "text": "no JSON\x1b[2J"}.get(kind, "{}"))
    if kind == "huge":
        os.truncate(path, 1 << 40)
    if kind == "owner":
        os.chown(path, NOBODY, NOBODY)


def answer(job, *words) -> subprocess.CompletedProcess:
    """What a command of forebay says, which must not hang."""
    process = job.forebay_starts(*words)
    try:
        out, err = process.communicate(timeout=ANSWER_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail(f"{words} hangs")
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_record_of_a_persistent_allocation_affects_no_command(job, kind):
    evil = root(job, "evil")
    evil.mkdir()
    put(evil / "allocation.json", kind)
    assert answer(job, "status").returncode == 0
    done = answer(job, "persistent", "create", "proj1", "--capacity", "1MiB", *job.where)
    assert done.returncode == 0, done.stderr
    assert listed(job)["evil"]["state"] == "damaged" and listed(job)["proj1"]["state"] == "ready"
    job.script("touch $DW_PERSISTENT_STRIPED_proj1/x", USE)
    done = answer(job, "run", *job.where, "job.sh")
    assert done.returncode == 0 and (root(job) / "striped" / "x").exists(), done.stderr
    job.script("touch ran", USE.replace("proj1", "evil"))
    done = answer(job, "run", *job.where, "job.sh")
    assert done.returncode == 125 and "evil" in done.stderr and not (job.directory / "ran").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_use_of_a_persistent_allocation_hangs_no_command(job, kind):
    made(job)
    put(root(job) / "uses" / "1-1@vm.json", kind)
    for words in (["persistent", "list", *job.where], ["persistent", "show", "proj1", *job.where], ["status"]):
        answer(job, *words)
    job.script("true", USE)
    answer(job, "run", *job.where, "job.sh")
    answer(job, "persistent", "destroy", "proj1", *job.where)
    assert job.allocations() in ([root(job)], [])


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_record_of_a_job_is_named_and_skipped(job, kind):
    record = job.state / f"17-1@{os.uname().nodename}.json"
    put(record, kind)
    for words in (["status"], ["jobs"], ["clean"], ["gather"], ["persistent", "list"]):
        done = answer(job, *words)
        assert words[0] == "persistent" or str(record) in done.stderr, (words, done.stderr)
        assert "\x1b" not in done.stderr
    job.script("echo ran", DW)
    done = answer(job, "run", *job.where, "job.sh")
    assert done.returncode == 0 and done.stdout == "ran\n", done.stderr
    assert os.path.lexists(record)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["17.journal", "17.lock", "17.journal-wal"])
def test_foreign_journal_of_a_staging_hangs_no_command(job, name, kind):
    (job.state / "stagings").mkdir()
    put(job.state / "stagings" / name, kind)
    for words in (["status"], ["wait"], ["list"], ["retry", "17"], ["cancel", "17"], ["forget", "17"]):
        answer(job, "stage", *words)
    (job.directory / "in").write_text("in")
    done = answer(job, "stage", "out", "in", "out")
    assert done.returncode == 0 and (job.directory / "out").read_text() == "in", done.stderr


def killed_job_record(job) -> tuple:
    """The record of a job that was killed, and its content."""
    job.script("mkdir $DW_JOB_STRIPED/out; touch wrote; sleep 300", DW)
    job.stop_when(job.start(), (job.directory / "wrote").exists, KILL)
    (path,) = job.state.glob("*.json")
    return path, json.loads(path.read_text())


@pytest.mark.parametrize("member", ["place", "job_directory", "emulation", "persistent", "id"])
def test_clean_removes_nothing_that_a_forged_record_names(job, member):
    path, record = killed_job_record(job)
    victim = job.directory.parent / "victim"
    victim.mkdir()
    (victim / "thesis").write_text("only copy")
    forged = {
        "place": {"root": str(victim), "mounted": False, "capacity_bytes": 1},
        "persistent": [{"name": "p", "root": str(victim), "file": f"{victim}/../victim/thesis"}],
        "id": "../victim",
    }
    path.write_text(json.dumps(record | {member: forged.get(member, str(victim))}))
    for words in (["clean", "--kill"], ["clean", "--discard", record["id"]], ["clean", "--discard", "../victim"]):
        done = answer(job, *words)
        assert str(path) in done.stderr, done.stderr
    assert (victim / "thesis").read_text() == "only copy"
    path.write_text(json.dumps(record))
    assert answer(job, "clean", record["id"], "--kill").returncode == 0
    job.leaves_nothing()


@pytest.mark.parametrize("host", ["-oProxyCommand=touch ran", "a b", "-V"])
def test_gather_calls_no_remote_shell_with_a_forged_host(job, host):
    path, record = killed_job_record(job)
    shell = job.directory / "shell"
    shell.write_text('#!/bin/sh\ntouch ran\nexec "$@"\n')
    shell.chmod(0o755)
    path.write_text(json.dumps(record | {"host": host, "stage_out": [], "drain_to": []}))
    done = answer(job, "gather", "--rsh", str(shell))
    assert str(path) in done.stderr and not (job.directory / "ran").exists(), done.stderr
    path.write_text(json.dumps(record))
    assert answer(job, "clean", record["id"], "--kill").returncode == 0


def test_create_line_is_used(job):
    """`CREATE` of a job in a store with a foreign fifo makes its allocation all the same."""
    evil = root(job, "evil")
    evil.mkdir()
    put(evil / "allocation.json", "fifo")
    job.script("touch $DW_PERSISTENT_STRIPED_proj1/x", CREATE, USE)
    done = answer(job, "run", *job.where, "job.sh")
    assert done.returncode == 0 and (root(job) / "striped" / "x").exists(), done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", few("job.json", "step-1-2.json"))
def test_foreign_file_in_a_record_of_io_hangs_no_report(job, name, kind):
    job.script("true")
    assert answer(job, "run", *job.where, "job.sh").returncode == 0
    (record,) = job.records()
    put(record / name, kind)
    for words in (["report", str(record)], ["why"], ["report"]):
        done = answer(job, *words)
        assert "Traceback" not in done.stderr, done.stderr
    assert answer(job, "run", *job.where, "job.sh").returncode == 0


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_foreign_study_is_an_error_and_makes_no_command_hang(job, kind):
    job.script("true")
    (job.directory / "job.tune").mkdir()
    put(job.directory / "job.tune" / "study.jsonl", kind)
    for words in (("tune", "--budget", "1", "job.sh"), ("report", "job.tune")):
        done = answer(job, *words)
        assert done.returncode == 1 and "error: " in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("kind", ["fifo", "directory", "truncated", "text"])
def test_foreign_darshan_log_is_an_error_and_makes_no_command_hang(job, kind):
    put(job.directory / "ada.darshan", kind)
    done = answer(job, "report", "ada.darshan")
    assert done.returncode == 1 and "ada.darshan" in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_list_that_is_no_file_is_an_error_before_the_job(job, kind):
    put(job.directory / "list", kind)
    job.script("touch ran", DW, "#DW stage_in type=list source=%d/list")
    done = answer(job, "run", *job.where, "job.sh")
    assert done.returncode == 125 and "list" in done.stderr, done.stderr
