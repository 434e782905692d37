"""The step of a job's record: there from MPI_Init on, whole after MPI_Finalize, never at the job's cost."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from support.mpi import RUN_SECONDS_MAX, said
from support.waiting import wait_until


def steps(record) -> list[dict]:
    """All steps; nothing else may be left in the directory but live files of programs that did not end well."""
    left = [path for path in sorted(record.iterdir()) if not path.name.startswith("live-")]
    found = [json.loads(path.read_text()) for path in left]
    names = sorted(f"step-{round(step['started_unix_s'] * 1e6) // 1000}-{step['pid']}.json" for step in found)
    assert names == sorted(path.name for path in left)
    return found


def test_step_record_is_the_report_with_program_and_time(mpi, tmp_path, record):
    report = tmp_path / "report.json"
    before = time.time()
    run = mpi.run(
        2,
        mpi.observed(),
        "independent",
        tmp_path / "a f",
        FOREBAY_PROFILE=record,
        FOREBAY_MPI_STATS=report,
        MPICH_MPIIO_STATS="1",
    )
    assert run.returncode == 0
    assert run.stderr.count("MPIIO write access patterns") == 1
    [step] = steps(record)
    assert step == json.loads(report.read_text())
    assert (step["forebay_mpi"], step["finished"], step["ranks"], step["hosts"], step["trace"]) == (2, True, 2, 1, None)
    assert step["program"] == str(mpi.observed())
    assert step["arguments"] == ["independent", str(tmp_path / "a f")]
    assert step["host"] == os.uname().nodename
    assert before - 0.001 <= step["started_unix_s"] <= time.time()
    assert 0 < step["wall_s"] < RUN_SECONDS_MAX
    assert [file["write"]["calls"]["independent"] for file in step["files"]] == [8]
    assert "aborted" not in step


def test_recording_prints_nothing(mpi, tmp_path, record):
    run = mpi.run(2, mpi.observed(), "unclosed", tmp_path / "f", FOREBAY_PROFILE=record)
    assert (run.returncode, run.stderr) == (0, "")
    assert steps(record)[0]["files"][0]["not_closed"] == 2


def test_trace_is_named_after_the_step(mpi, tmp_path, record):
    mpi.run(1, mpi.observed(), "independent", tmp_path / "f", FOREBAY_PROFILE=record, FOREBAY_MPI_TRACE="1")
    [path] = record.glob("step-*.json")
    assert json.loads(path.read_text())["trace"] == path.stem.replace("step", "trace")


def test_relative_directory_is_resolved_at_the_start(mpi, tmp_path, record):
    script = tmp_path / "rank.sh"
    script.write_text(f'cd {str(tmp_path)!r}\nexec "$@"\n')
    mpi.run(
        1,
        "bash",
        script,
        mpi.ending(),
        "changing_directory",
        tmp_path / "f",
        FOREBAY_PROFILE="record",
        FOREBAY_MPI_STATS="report.json",
    )
    assert steps(record)[0]["finished"]
    assert json.loads((tmp_path / "report.json").read_text())["finished"]


def waiting(mpi, tmp_path, record, ranks=2):
    """A program that waits between MPI_Init and MPI_Finalize until a file appears."""
    return mpi.start(ranks, mpi.ending(), "waiting", tmp_path / "f", FOREBAY_PROFILE=record)


def wait_for_file(directory, pattern, process):
    wait_until(lambda: list(directory.glob(pattern)), what=f"{pattern} in {directory}", process=process)
    return next(directory.glob(pattern))


def test_killed_program_leaves_an_unfinished_step(mpi, tmp_path, record):
    process = waiting(mpi, tmp_path, record)
    path = wait_for_file(record, "step-*.json", process)
    unfinished = json.loads(path.read_text())
    os.kill(unfinished["pid"], signal.SIGKILL)
    process.communicate(timeout=RUN_SECONDS_MAX)
    assert process.returncode != 0
    [step] = steps(record)
    assert step == unfinished
    assert (step["finished"], step["wall_s"], step["files"], step["ranks"]) == (False, None, [], 2)
    assert step["program"] == str(mpi.ending())


def test_exit_without_finalize_leaves_an_unfinished_step(mpi, tmp_path, record):
    mpi.run(1, mpi.ending(), "leaving", tmp_path / "f", FOREBAY_PROFILE=record)
    assert mpi.collect(record).returncode == 0
    [step] = steps(record)
    assert not step["finished"]
    assert "aborted" not in step


@pytest.mark.parametrize("ranks", [1, 2])
def test_abort_is_recorded_by_the_rank_that_calls_it(mpi, tmp_path, record, ranks):
    run = mpi.run(ranks, mpi.ending(), "aborting", tmp_path / "f", FOREBAY_PROFILE=record)
    assert run.returncode == 7 and mpi.collect(record).returncode == 0
    [step] = steps(record)
    assert (step["finished"], step["aborted"]) == (False, {"rank": ranks - 1, "code": 7})


@pytest.mark.soak
def test_concurrent_steps_do_not_interfere(mpi, tmp_path, record):
    running = [
        mpi.start(1, mpi.observed(), "independent", tmp_path / f"f{n}", FOREBAY_PROFILE=record) for n in range(6)
    ]
    for process in running:
        _, errors = process.communicate(timeout=RUN_SECONDS_MAX)
        assert process.returncode == 0, errors
    found = steps(record)
    assert all(step["finished"] for step in found)
    assert sorted(step["files"][0]["path"] for step in found) == [str(tmp_path / f"f{n}") for n in range(6)]


def test_spawned_programs_are_separate_steps(openmpi, tmp_path, record):
    report = tmp_path / "report.json"
    run = openmpi.run(
        1, openmpi.observed(), "spawning", tmp_path / "f", FOREBAY_PROFILE=record, FOREBAY_MPI_STATS=report
    )
    assert run.stdout.count(" ok") == 3
    found = steps(record)
    assert sorted(step["ranks"] for step in found) == [1, 1]
    assert all(step["finished"] for step in found)
    assert json.loads(report.read_text())["ranks"] == 1


def assert_unharmed(mpi, tmp_path, directory, reason):
    run = mpi.run(2, mpi.observed(), "independent", tmp_path / "f", FOREBAY_PROFILE=directory)
    assert run.returncode == 0
    assert run.stdout.count(" ok") == 2
    [line] = said(run)
    assert line.startswith(f"forebay: {directory}/step-") and line.endswith(f"could not be written: {reason}")


def test_missing_directory_is_reported_once(mpi, tmp_path):
    assert_unharmed(mpi, tmp_path, tmp_path / "nowhere", "No such file or directory")


@pytest.fixture
def mounted(tmp_path):
    """Mounts a small tmpfs, and takes it away again."""
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    directory = tmp_path / "small"
    directory.mkdir()

    def mount(options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=True)
        return directory

    yield mount
    subprocess.run(["umount", directory], check=False, capture_output=True)


def test_read_only_directory_is_reported_once(mpi, tmp_path, mounted):
    assert_unharmed(mpi, tmp_path, mounted("ro"), "Read-only file system")


def test_full_directory_is_reported_once_and_left_clean(mpi, tmp_path, mounted):
    directory = mounted("size=64k")
    with (directory / "filling").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while file.write(b"x" * 4096) == 4096:
            pass
    assert_unharmed(mpi, tmp_path, directory, "No space left on device")
    assert [path.name for path in directory.iterdir()] == ["filling"]


def test_vanished_directory_is_reported_once(mpi, tmp_path, record):
    process = waiting(mpi, tmp_path, record)
    path = wait_for_file(record, "step-*.json", process)
    path.unlink()
    shutil.rmtree(record)
    (tmp_path / "f").touch()
    out, err = process.communicate(timeout=RUN_SECONDS_MAX)
    assert process.returncode == 0
    assert out.count(" ok") == 2
    assert [line for line in err.splitlines() if line.startswith("forebay: ")] == [
        f"forebay: {path}: the record of this program could not be written: No such file or directory"
    ]
