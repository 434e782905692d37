"""Totals of a job: what its programs moved, each byte once, whatever it was moved through."""

import json
import sys

import pytest

from support.strace import few
from msgspec.structs import replace

from forebay.profiles import metrics, record_reader
from forebay.report.assembly import tiles

HEAD, DATA = 128, 2_000_000


@pytest.fixture
def profile(openmpi, direct, tmp_path):
    record = tmp_path / "record"
    record.mkdir()
    for case in ("mixed", "large"):
        assert openmpi.alone(direct, case, tmp_path / case, FOREBAY_PROFILE=record).returncode == 0
    return record_reader.read_record(record)


def test_file_of_two_layers_counts_both(profile, tmp_path):
    mixed, large = sorted(profile.programs, key=lambda program: program.arguments, reverse=True)
    assert metrics.moved_bytes(mixed, "write") == HEAD + DATA
    assert (tmp_path / "mixed").stat().st_size == HEAD + DATA
    assert {name for file in mixed.files for name in file.layers} == {"POSIX", "STDIO"}
    assert metrics.moved_bytes(large, "write") == DATA
    both = sum(metrics.layer_s(layer) for file in mixed.files for layer in file.layers.values())
    assert metrics.io_s(replace(mixed, io_s=None)) == pytest.approx(both)


def test_headline_adds_all_programs(profile):
    written = next(tile for tile in tiles(profile) if tile.name == "Written")
    assert written.value == "3.81 MiB", "4,000,128 bytes"
    assert next(tile for tile in tiles(profile) if tile.name == "Files").value == "2"


@pytest.mark.soak
def test_terminal_adds_all_programs(job, direct):
    job.script(f"{direct} mixed m && {direct} large one && {direct} large two")
    assert job.run().returncode == 0
    [record] = job.records()
    shown = job.command("report", record.name).stdout
    assert "POSIX  3.81 MiB written" in shown and "STDIO  1.91 MiB written" in shown, shown


POOL = """
import multiprocessing, os, sys, time
def work(number):
    open(f"began-{os.getpid()}", "w").close()
    while sum(name.startswith("began-") for name in os.listdir()) < 3:
        time.sleep(0.01)
    with open(f"part-{number}", "wb") as file:
        for _ in range(50):
            os.write(file.fileno(), b"x" * 50000)
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        pool.map(work, range(3), chunksize=1)
"""


@pytest.mark.soak
@pytest.mark.parametrize("start", few("spawn", "fork"))
def test_pool_of_workers_is_one_group_and_no_failure(job, start):
    """The pool kills its workers when their work is done."""
    (job.directory / "pool.py").write_text(POOL)
    job.script(f'{sys.executable} "$SLURM_SUBMIT_DIR/pool.py" {start}')
    assert job.run().returncode == 0
    [record] = job.records()
    shown = " ".join(job.command("report", record.name).stdout.split())
    assert "3 processes, this one with most I/O: python3" in shown and "problem" not in shown, shown
    assert shown.count("was killed, or became another program") <= 1, shown
    assert " succeeded. " in job.command("why", record.name).stdout


def test_mpi_file_counts_what_system_calls_moved(openmpi, tmp_path):
    """Not what the program asked for, which an MPI may move in larger pieces."""
    record = tmp_path / "record"
    record.mkdir()
    assert openmpi.run(2, openmpi.observed(), "own", tmp_path / "f", FOREBAY_PROFILE=record).returncode == 0
    [step] = [json.loads(path.read_text()) for path in record.glob("step-*.json")]
    system = sum(file["write"]["system_bytes"] for file in step["files"])
    [program] = record_reader.read_record(record).programs
    assert metrics.moved_bytes(program, "write") == system > 0
