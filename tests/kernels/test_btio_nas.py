"""BTIO as NAS has it beyond one pass of writing: read back and written over, Fortran records, hints."""

import array
import pathlib
import re
import struct
import subprocess

import pytest

from support.btio_deck import COMPONENTS, expected_values, run_btio, values_in, write_deck
from support.strace import few
from support.kernels import (
    assert_failed,
    assert_refused,
    flip_byte,
    mpiexec,
    only_json_line,
    result_of,
    with_small_disk,
)

SOURCES = pathlib.Path(__file__).parents[2] / "kernels"
GRID = (7, 10, 8)
POINTS = 7 * 10 * 8
DUMP_VALUES = POINTS * COMPONENTS
FILES = {
    "full": "btio.full.out",
    "independent": "btio.full.out",
    "simple": "btio.simple.out",
    "fortran": "btio.fortran.out",
}


@pytest.fixture(scope="session")
def has(build, tmp_path_factory):
    """Skips where a variant was left out of the build."""
    deck = write_deck(tmp_path_factory.mktemp("probe"), dumps=1)

    def check(variant):
        run = run_btio(build, 1, deck, "--variant", variant, "--sweeps", 0)
        if run.returncode == 2 and "was left out" in run.stderr:
            pytest.skip(f"built without {variant}")

    return check


def run_nas(build, ranks, directory, variant, *flags, dumps=7, mode="w", **options):
    deck = write_deck(directory, grid=GRID, dumps=dumps, mode=mode)
    return run_btio(build, ranks, deck, "--sweeps", 0, "--variant", variant, *flags, **options)


def dump_values(*dumps):
    """The values of these dumps, one after the other."""
    values = array.array("d")
    for dump in dumps:
        values.extend(range(dump * DUMP_VALUES + 1, (dump + 1) * DUMP_VALUES + 1))
    return values


def calls_of_a_dump(variant, ranks):
    side = int(ranks**0.5)
    rows = GRID[1] * GRID[2] * side
    calls = {"full": ranks, "independent": ranks, "simple": rows, "fortran": POINTS, "epio": ranks * side}
    return {**calls, "pnetcdf": ranks * side, "pnetcdf-nonblocking": ranks}[variant]


# Read back every few dumps


@pytest.mark.soak
@pytest.mark.parametrize(
    "variant, ranks, io",
    [
        ("full", 1, "ompio"),
        ("full", 4, "romio321"),
        ("independent", 4, "ompio"),
        ("simple", 4, "romio321"),
        ("fortran", 4, "ompio"),
    ],
)
def test_dumps_are_read_back_and_overwritten(build, tmp_path, has, variant, ranks, io):
    """7 dumps, 3 at a time: 0 1 2 are read back, 3 4 5 written over them and read back, 6 over 3."""
    has(variant)
    result = result_of(run_nas(build, ranks, tmp_path, variant, "--read-interval", 3, "--verify", "--sync", io=io))
    assert values_in(tmp_path / "out" / FILES[variant]) == dump_values(6, 4, 5)
    moved = 7 + 6
    facts = {
        "dumps": 7,
        "read_interval": 3,
        "bytes": moved * DUMP_VALUES * 8,
        "calls": moved * calls_of_a_dump(variant, ranks),
        "mode": "w",
        "verified": True,
        "mismatches": 0,
    }
    assert {key: result[key] for key in facts} == facts
    assert result["read_s"] > 0 and result["write_s"] > 0
    again = result_of(run_nas(build, ranks, tmp_path, variant, "--read-interval", 3, "--verify", mode="r", io=io))
    assert (again["verified"], again["bytes"]) == (True, 3 * DUMP_VALUES * 8)


@pytest.mark.parametrize("variant", ["pnetcdf", "pnetcdf-nonblocking"])
def test_netcdf_records_are_read_back_and_overwritten(build, tmp_path, has, variant):
    has(variant)
    result = result_of(run_nas(build, 4, tmp_path, variant, "--read-interval", 3, "--verify"))
    assert (result["verified"], result["calls"]) == (True, 13 * calls_of_a_dump(variant, 4))
    values = array.array("d", (tmp_path / "out" / "btio.nc").read_bytes()[-3 * DUMP_VALUES * 8 :])
    values.byteswap()
    assert values == dump_values(6, 4, 5)


@pytest.mark.soak
@pytest.mark.parametrize("dumps, left", [(7, [6]), (6, [3, 4, 5]), (2, [0, 1])])
def test_sequential_file_ends_with_the_last_record(build, tmp_path, dumps, left):
    """Fortran drops what follows the record that is written after REWIND."""
    flags = ["--read-interval", 3, "--verify"]
    result = result_of(run_nas(build, 4, tmp_path, "epio", *flags, dumps=dumps))
    read = dumps // 3 * 3
    assert (result["verified"], result["bytes"]) == (True, (dumps + read) * DUMP_VALUES * 8)
    assert result["calls"] == (dumps + read) * calls_of_a_dump("epio", 4)
    seen = array.array("d")
    for path in (tmp_path / "out").iterdir():
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("=i", data, at)
            seen.frombytes(data[at + 4 : at + 4 + length])
            at += length + 8
    assert sorted(seen) == list(dump_values(*left))
    again = result_of(run_nas(build, 4, tmp_path, "epio", *flags, dumps=dumps, mode="r"))
    assert (again["verified"], again["bytes"]) == (True, len(left) * DUMP_VALUES * 8)


@pytest.mark.soak
@pytest.mark.parametrize("interval, read, left", [(1, 4, [3]), (4, 4, [0, 1, 2, 3]), (5, 0, [0, 1, 2, 3])])
def test_intervals_at_both_ends_are_accepted(build, tmp_path, interval, read, left):
    result = result_of(run_nas(build, 4, tmp_path, "simple", "--read-interval", interval, "--verify", dumps=4))
    assert result["bytes"] == (4 + read) * DUMP_VALUES * 8
    assert values_in(tmp_path / "out" / "btio.simple.out") == dump_values(*left)


def test_dump_that_was_not_overwritten_is_found(build, tmp_path):
    """A file of 7 dumps, 3 at a time, is not one of 8: what stands second would be dump 7."""
    result_of(run_nas(build, 4, tmp_path, "full", "--read-interval", 3))
    run = run_nas(build, 4, tmp_path, "full", "--read-interval", 3, "--verify", dumps=8, mode="r")
    assert_failed(run, rf"dump 7, x 0, y 0, z 0, component 0 .*; {DUMP_VALUES} of all values are wrong")
    assert only_json_line(run)["mismatches"] == DUMP_VALUES


# Fortran direct access


@pytest.mark.parametrize("ranks", few(4, 1, 9))
def test_fortran_writes_a_record_per_point(build, tmp_path, has, ranks):
    has("fortran")
    deck = write_deck(tmp_path, grid=(12, 13, 14), dumps=3)
    result = result_of(run_btio(build, ranks, deck, "--variant", "fortran", "--verify", "--sync"))
    assert (result["calls"], result["bytes"]) == (12 * 13 * 14 * 3, 40 * 12 * 13 * 14 * 3)
    assert (result["files"], result["verified"]) == (1, True)
    assert values_in(tmp_path / "out" / "btio.fortran.out") == expected_values((12, 13, 14), 3)


@pytest.mark.soak
def test_fortran_is_read_on_other_ranks_and_damage_is_named(build, tmp_path, has):
    has("fortran")
    result_of(run_nas(build, 4, tmp_path, "fortran", dumps=2))
    assert result_of(run_nas(build, 1, tmp_path, "fortran", "--verify", dumps=2, mode="r"))["verified"] is True
    flip_byte(tmp_path / "out" / "btio.fortran.out", 2 * DUMP_VALUES * 8 - 1)
    run = run_nas(build, 4, tmp_path, "fortran", "--verify", dumps=2, mode="r")
    assert_failed(run, rf"dump 1, x 6, y 9, z 7, component 4 .*expected {2 * DUMP_VALUES}, found .*; 1 of all")
    run = run_nas(build, 4, tmp_path, "fortran", dumps=3, mode="r")
    assert_failed(run, r"stat on rank 0: .*holds \d+ bytes, \d+ expected\nhint: ")


@pytest.mark.parametrize("mode", ["w", "r"])
def test_fortran_names_the_path_it_cannot_open(build, tmp_path, has, mode):
    has("fortran")
    deck = write_deck(tmp_path, mode=mode, out=tmp_path / "nowhere")
    run = run_btio(build, 4, deck, "--variant", "fortran")
    assert_failed(run, r"Fortran open on rank 0: .*nowhere/btio.fortran.out: .*No such file.*\nhint: ")


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("size", ["400k", "804k"])
def test_fortran_reports_data_lost_on_a_full_disk(build, tmp_path, has, ranks, size):
    """829,440 bytes; gfortran's library reports success. In 804k all but the last pages fit."""
    has("fortran")
    run = run_btio(
        build, ranks, write_deck(tmp_path), "--variant", "fortran", before=with_small_disk(tmp_path / "out", size)
    )
    assert_failed(run, r"(stat|Fortran \w+) on rank \d: .*\nhint: .*full")
    assert run.stdout == ""


ASK_WHETHER_WHOLE = r"""
#include "harness/stored_file.h"
#include <stdlib.h>

const char kernel_name[] = "probe";

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  bool whole = stored_file_check_whole(MPI_COMM_WORLD, argv[1], atol(argv[2]));
  MPI_Finalize();
  return !whole;
}
"""


def test_hole_in_the_middle_is_found(tmp_path):
    """Rank 0 meets a full disk, then another rank gets the space behind it: the size is right."""
    probe = tmp_path / "probe.c"
    probe.write_text(ASK_WHETHER_WHOLE)
    files = [probe, *(SOURCES / "harness" / name for name in ("stored_file.c", "attempt.c", "message.c"))]
    subprocess.run(
        ["mpicc", "-D_XOPEN_SOURCE=700", f"-I{SOURCES}", *map(str, files), "-o", str(tmp_path / "probe")], check=True
    )
    path = tmp_path / "file"
    with open(path, "wb") as file:
        file.write(b"x" * 65536)
        file.seek(131072)
        file.write(b"x" * 65536)
    assert_failed(mpiexec(2, tmp_path / "probe", path, 196608), "nothing was stored from byte 65536 on\nhint: ")
    with open(path, "r+b") as file:
        file.write(b"x" * 196608)
    assert mpiexec(2, tmp_path / "probe", path, 196608).returncode == 0


# Hints


@pytest.mark.soak
def test_collective_buffering_hints_are_given_with_the_view(build, tmp_path):
    """ROMIO takes them: with one buffer of 4096 bytes a dump is written in pieces of that size."""
    command = ["strace", "-f", "-e", "trace=write,pwrite64", "-o", tmp_path / "calls"]
    deck = write_deck(tmp_path, dumps=1)
    run = mpiexec(
        4,
        build / "kernels" / "btio",
        "--sweeps",
        0,
        "--collbuf-nodes",
        1,
        "--collbuf-size",
        4096,
        deck,
        io="romio321",
        before=command,
    )
    result_of(run)
    sizes = [int(size) for size in re.findall(r"pwrite64\(.*, (\d+), \d+\) = ", (tmp_path / "calls").read_text())]
    assert sum(sizes) == 69_120 and max(sizes) == 4096


@pytest.mark.parametrize(
    "flags, pattern",
    [
        (["--collbuf-nodes", "2", "--variant", "simple"], "--collbuf-nodes belongs to --variant full, not to simple"),
        (["--collbuf-size", "0"], "--collbuf-size needs a whole number, 1 or more, not '0'"),
        (["--read-interval", "-1"], "--read-interval needs a whole number, 0 or more, not '-1'"),
    ],
)
def test_bad_option_is_refused(build, tmp_path, flags, pattern):
    assert_refused(run_btio(build, 4, write_deck(tmp_path), *flags), pattern)
