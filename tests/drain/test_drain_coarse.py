"""Drain to a file system that keeps times of modification in whole seconds."""

import json
import os
import shutil
import subprocess

import pytest

from support.job import DW

OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={}"


@pytest.fixture
def whole_seconds(job):
    """An ext2 with inodes of 128 bytes, which have no room for parts of a second, on a loop device."""
    mkfs = shutil.which("mkfs.ext2") or shutil.which("mkfs.ext2", path="/usr/sbin:/sbin")
    if os.getuid() != 0 or not os.path.exists("/dev/loop-control") or mkfs is None:
        pytest.skip("needs root, loop devices and mkfs.ext2 (e2fsprogs)")
    scratch = job.directory.parent
    image, mounted = scratch / "image", scratch / "coarse"
    mounted.mkdir()
    subprocess.run(["truncate", "-s", "8M", image], check=True)
    subprocess.run([mkfs, "-q", "-I", "128", image], check=True, capture_output=True)
    done = subprocess.run(["mount", "-t", "ext2", "-o", "loop", image, mounted], capture_output=True, text=True)
    if "loop device" in done.stderr:
        pytest.skip(f"no loop device can be set up here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    yield mounted
    subprocess.run(["umount", mounted], check=True)


def drained(job, pfs, *lines) -> dict:
    body = ['mkdir "$DW_JOB_STRIPED/out"; cd "$DW_JOB_STRIPED/out"', "echo 1 > a.nc; echo 1 > b.nc"]
    # No time is without a part of a second.
    body += ["touch -d @1700000000.25 a.nc b.nc", f"'{job.forebay}' drain wait > /dev/null", *lines]
    job.script("\n".join(body), DW, OUT.format(pfs))
    done = job.run("--json", "--drain", "*.nc")
    assert done.returncode == 0, done.stderr
    job.leaves_nothing()
    return json.loads(done.stdout)


def test_drained_file_with_times_of_whole_seconds_is_not_copied_again(job, whole_seconds):
    pfs = whole_seconds / "pfs"
    done = drained(job, pfs, f'stat -c %i:%Y {pfs}/*.nc > "$SLURM_SUBMIT_DIR/arrived"')
    assert done["drain"]["done"] >= 2
    assert (done["stage_out"]["files"], done["stage_out"]["unchanged_files"]) == (2, 2)
    found = [os.stat(pfs / name) for name in ("a.nc", "b.nc")]
    assert [status.st_mtime_ns for status in found] == [1700000000 * 10**9] * 2
    assert (job.directory / "arrived").read_text() == "".join(f"{status.st_ino}:1700000000\n" for status in found)


@pytest.mark.parametrize("time", ["1700000000.75", "1700000000.25"])
def test_file_changed_within_the_same_second_is_copied(job, whole_seconds, time):
    """By truncate(2), which closes nothing: as long and, to the target's file system, as old as before."""
    pfs = whole_seconds / "pfs"
    change = f'import os; os.truncate("a.nc", 0); os.truncate("a.nc", 2); os.utime("a.nc", ns=({time.replace(".", "")}0000000,) * 2)'
    done = drained(job, pfs, f"python3 -c '{change}'")
    assert (done["stage_out"]["files"], done["stage_out"]["unchanged_files"]) == (2, 1)
    assert (pfs / "a.nc").read_bytes() == b"\0\0"
    assert (pfs / "b.nc").read_text() == "1\n"


def test_file_changed_at_its_destination_is_copied_again(job, whole_seconds):
    pfs = whole_seconds / "pfs"
    done = drained(job, pfs, f"echo other > {pfs}/a.nc; touch -d @1700000000 {pfs}/a.nc")
    assert done["stage_out"]["unchanged_files"] == 1
    assert (pfs / "a.nc").read_text() == "1\n"


def test_job_whose_results_are_safe_by_whole_seconds_is_not_ended(job, whole_seconds):
    job.script(
        'mkdir "$DW_JOB_STRIPED/out"; cd "$DW_JOB_STRIPED/out"; echo 1 > a.nc; touch -d @1700000000.25 a.nc\n'
        f"'{job.forebay}' drain wait > /dev/null; sleep 7",
        DW,
        OUT.format(whole_seconds / "pfs"),
    )
    done = job.run("--json", "--drain", "*.nc", "--deadline", "0:15", "--drain-margin", "0:01")
    account = json.loads(done.stdout)
    assert (done.returncode, account["deadline"]["ended_job"]) == (0, False), done.stderr
    assert account["not_safe"] is None and account["stage_out"]["unchanged_files"] == 1
    job.leaves_nothing()
