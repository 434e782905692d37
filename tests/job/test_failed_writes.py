"""A full burst buffer, and other writes that fail: recorded, told first, and no broken file replaces a good one."""

import json
import signal
import subprocess
import time

import pytest

SMALL = "#DW jobdw type=scratch access_mode=striped capacity=1MiB"
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/ destination=%d/out"
#: Writes 2 MB as a checkpoint, and swallows that it fails.
SWALLOWS = 'dd if=/dev/zero of="$DW_JOB_STRIPED/check" bs=100k count=20 2>/dev/null || true'
#: A static program is not recorded.
STATIC = """
#include <fcntl.h>
#include <unistd.h>
static char block[100000];
int main(int count, char **words) {
  int file = open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 20; i++)
    if (write(file, block, sizeof block) < 0)
      break;
  return 0;
}
"""
#: Writes more than fits, and then less under the same name.
RETRIES = """
import os, sys, time
path = os.environ["DW_JOB_STRIPED"] + "/check"
try:
    with open(path, "wb") as file:
        file.write(bytes(10 << 20))
except OSError as error:
    print(error)
time.sleep(float(sys.argv[1]))
open(path, "wb").write(b"whole")
"""


@pytest.fixture
def full(job):
    """A job whose checkpoint does not fit, and a good one of an earlier job at its destination."""
    job.in_memory()
    (job.directory / "out").mkdir()
    (job.directory / "out" / "check").write_text("good")
    (job.directory / "out" / "kept").write_text("old")
    job.script(f'echo new > "$DW_JOB_STRIPED/kept"; {SWALLOWS}', SMALL, OUT)
    return job


def check_is_beside(job, done):
    assert done.returncode == 123, done.stderr
    out = job.directory / "out"
    assert (out / "check").read_text() == "good"
    assert 0 < (out / "check.write-failed").stat().st_size < 2_000_000
    assert "the file before it is unchanged" in done.stderr and "check.write-failed" in done.stderr


def test_file_whose_write_failed_is_staged_next_to_the_good_one(full):
    done = full.run("--json", "--store", "memory")
    check_is_beside(full, done)
    assert "error: a write failed:" in done.stderr and "/check: ENOSPC in write" in done.stderr
    assert "the burst buffer was full" in done.stderr
    assert (full.directory / "out" / "kept").read_text() == "new\n"
    told = json.loads(done.stdout)
    (failed,) = told["failed_writes"]
    assert failed["error"] == "ENOSPC" and failed["path"].endswith("/check")
    assert [one["is_renamed"] for one in told["stage_out"]["incomplete"]] == [True]
    full.leaves_nothing()


def test_why_and_report_begin_with_the_failed_write(full):
    full.run("--store", "memory")
    why = full.command("why", "--json")
    told = json.loads(why.stdout)
    assert told["state"] == "write failed" and "capacity" in told["next_step"], why.stdout
    assert "The burst buffer was full. A write of" in told["paragraph"] and "ENOSPC" in told["paragraph"]
    report = full.command("report")
    assert "failed with ENOSPC" in " ".join(report.stdout.split()), report.stdout
    assert "did not hold this job back" not in report.stdout


def test_failed_write_of_an_unrecorded_program_is_inferred_from_the_full_store(full):
    source = full.directory / "static.c"
    source.write_text(STATIC)
    subprocess.run(["cc", "-static", "-o", full.directory / "static", source], check=True)
    full.script('sleep 1; ./static "$DW_JOB_STRIPED/check"', SMALL, OUT)
    check_is_beside(full, full.run("--store", "memory"))


def test_failed_write_without_a_profile_is_inferred_from_the_full_store(full):
    full.script(f'echo new > "$DW_JOB_STRIPED/kept"; sleep 3; {SWALLOWS}', SMALL, OUT)
    check_is_beside(full, full.run("--store", "memory", "--no-profile"))
    assert (full.directory / "out" / "kept").read_text() == "new\n"


def test_accepted_failed_writes_are_staged_under_their_names(full):
    done = full.run("--store", "memory", "--accept-failed-writes")
    assert done.returncode == 0 and "a write failed" in done.stderr, done.stderr
    assert (full.directory / "out" / "check").stat().st_size > 100_000
    assert not (full.directory / "out" / "check.write-failed").exists()


def test_new_file_whose_write_failed_keeps_its_name_and_is_reported(full):
    (full.directory / "out" / "check").unlink()
    done = full.run("--store", "memory")
    assert done.returncode == 123 and "out/check may be incomplete" in done.stderr, done.stderr
    assert (full.directory / "out" / "check").stat().st_size > 100_000


@pytest.mark.parametrize("full_s", [0, 3])
def test_file_truncated_and_rewritten_is_complete(full, full_s):
    """Also if the store is full for so long that `forebay run` sees it."""
    (full.directory / "retry.py").write_text(RETRIES)
    full.script(f"python3 retry.py {full_s}", SMALL, OUT)
    done = full.run("--store", "memory")
    assert done.returncode == 0 and "a write failed" not in done.stderr, done.stderr
    assert full_s == 0 or "the burst buffer was full" in done.stderr
    assert (full.directory / "out" / "check").read_text() == "whole"


def test_output_of_a_program_into_a_file_is_recorded_too(full):
    full.script('head -c 2000000 /dev/zero > "$DW_JOB_STRIPED/check" || true', SMALL, OUT)
    done = full.run("--store", "memory")
    check_is_beside(full, done)


def test_drain_leaves_a_file_whose_write_failed_to_the_stage_out(full):
    full.script(f"{SWALLOWS}; sleep 1", SMALL, OUT)
    check_is_beside(full, full.run("--store", "memory", "--drain", "check"))


def test_clean_after_a_kill_keeps_the_good_file(full):
    full.script(f"{SWALLOWS}; touch reached; sleep 100", SMALL, OUT)
    process = full.start("--store", "memory")
    until = time.monotonic() + 180
    while not (full.directory / "reached").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = full.command("clean", full.record()["id"], "--kill")
    check_is_beside(full, done)
    full.leaves_nothing()


def test_last_line_that_did_not_fit_is_skipped(full):
    full.run("--store", "memory")
    (listed,) = full.state.rglob("failed-writes")
    listed.write_text(listed.read_text() + '{"path": "/cu')
    assert "ENOSPC" in full.command("why").stdout
