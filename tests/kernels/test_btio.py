"""BTIO full: the bytes in the file, the answers of --verify, and what happens when something is wrong.

A value is its own index in the file counted from 1, so the expected file needs no partition: it is the
numbers 1, 2, 3, ... as doubles.
"""

import os
import pathlib
import subprocess

import pytest

from support.btio_deck import COMPONENTS, expected_values, run_btio, values_in, write_deck
from support.strace import few
from support.kernels import (
    assert_failed,
    assert_refused,
    both_libraries,
    flip_byte,
    mpiexec,
    only_json_line,
    result_of,
    with_small_disk,
)

SOURCES = pathlib.Path(__file__).parents[2] / "kernels"
VALUE_BYTES = 8


# The file


@both_libraries
@pytest.mark.parametrize("ranks", few(9, 1, 4))
def test_class_s_file_holds_exactly_the_numbered_values(build, tmp_path, ranks, io):
    result = result_of(run_btio(build, ranks, write_deck(tmp_path), "--verify", "--sync", io=io))

    path = tmp_path / "out" / "btio.full.out"
    assert path.stat().st_size == 829_440
    assert values_in(path) == expected_values((12, 12, 12), 12)
    assert result["verified"] is True
    assert result["mismatches"] == 0


@pytest.mark.soak
@both_libraries
@pytest.mark.parametrize(
    "ranks, grid, dumps",
    few((9, (11, 9, 16), 2), (1, (3, 3, 3), 1), (4, (64, 6, 7), 2), (4, (7, 10, 13), 3), (16, (13, 14, 15), 2), kept=3),
)
def test_any_grid_gives_the_same_bytes(build, tmp_path, ranks, grid, dumps, io):
    deck = write_deck(tmp_path, grid=grid, dumps=dumps)
    result_of(run_btio(build, ranks, deck, "--verify", "--sweeps", "1", io=io))
    assert values_in(tmp_path / "out" / "btio.full.out") == expected_values(grid, dumps)


@pytest.mark.soak
@both_libraries
def test_longer_file_of_an_earlier_run_is_replaced(build, tmp_path, io):
    path = tmp_path / "out" / "btio.full.out"
    deck = write_deck(tmp_path, dumps=2)
    path.write_bytes(b"old" * 1_000_000)
    result_of(run_btio(build, 4, deck, "--verify", io=io))
    assert path.stat().st_size == 2 * 69_120


# What is printed


def test_result_line_describes_the_run(build, tmp_path):
    result = result_of(run_btio(build, 4, write_deck(tmp_path, dumps=3), "--sync"))
    facts = {
        "kernel": "btio",
        "variant": "full",
        "ranks": 4,
        "grid": [12, 12, 12],
        "dumps": 3,
        "sweeps": 5,
        "files": 1,
        "bytes": 207_360,
        "calls": 12,
        "path": str(tmp_path / "out" / "btio.full.out"),
        "mode": "w",
        "verified": None,
        "mismatches": 0,
    }
    assert {key: result[key] for key in facts} == facts
    assert result["mpi"].startswith("Open MPI v")
    assert result["io_s"] >= max(result[f"{part}_s"] for part in ("open", "write", "sync", "close")) > 0
    assert result["total_s"] >= result["io_s"]
    assert result["compute_s"] > 0
    assert result["read_s"] == result["verify_s"] == 0


def test_path_with_blanks_quotes_and_no_utf8_gives_valid_json(build, tmp_path):
    out = os.fsencode(tmp_path) + b'/a "b"\\ \xc3\xa9 \xff'
    os.mkdir(out)
    deck = tmp_path / "inputbt.data"
    deck.write_bytes(b"w\n0\n1\n12 12 12\n  " + out + b"  # comment\n")
    result = result_of(run_btio(build, 1, deck))
    assert result["path"] == f'{tmp_path}/a "b"\\ \u00e9 \ufffd/btio.full.out'
    assert os.path.getsize(out + b"/btio.full.out") == 69_120


def test_help_is_printed_once(build):
    run = mpiexec(4, build / "kernels" / "btio", "--help")
    assert run.returncode == 0
    assert run.stdout.count("usage:") == 1
    assert "example: mpiexec -n 4 btio" in run.stdout
    assert run.stderr == ""


# Reading and verifying


@pytest.mark.soak
@both_libraries
def test_read_mode_reads_on_another_number_of_ranks(build, tmp_path, io):
    result_of(run_btio(build, 4, write_deck(tmp_path), io=io))
    before = (tmp_path / "out" / "btio.full.out").read_bytes()
    result = result_of(run_btio(build, 9, write_deck(tmp_path, mode="r"), "--verify", io=io))
    assert (result["mode"], result["verified"]) == ("r", True)
    assert result["read_s"] > 0 == result["write_s"] == result["compute_s"]
    assert (tmp_path / "out" / "btio.full.out").read_bytes() == before


@pytest.mark.soak
@both_libraries
@pytest.mark.parametrize("byte", few(7, 0))
def test_verify_names_the_place_of_one_flipped_byte(build, tmp_path, byte, io):
    grid, dumps = (12, 9, 10), 4
    result_of(run_btio(build, 4, write_deck(tmp_path, grid=grid, dumps=dumps), io=io))
    dump, x, y, z, component = 3, 5, 7, 2, 4
    index = COMPONENTS * (((dump * grid[2] + z) * grid[1] + y) * grid[0] + x) + component
    flip_byte(tmp_path / "out" / "btio.full.out", index * VALUE_BYTES + byte)

    deck = write_deck(tmp_path, mode="r", grid=grid, dumps=dumps)
    run = run_btio(build, 9, deck, "--verify", io=io)

    assert_failed(run, rf"dump {dump}, x {x}, y {y}, z {z}, component {component} .*expected {index + 1}, found")
    result = only_json_line(run)
    assert (result["verified"], result["mismatches"]) == (False, 1)


@pytest.mark.soak
def test_verify_names_the_first_of_many_wrong_values_and_counts_them(build, tmp_path):
    result_of(run_btio(build, 4, write_deck(tmp_path)))
    with open(tmp_path / "out" / "btio.full.out", "r+b") as file:
        file.seek(69_120)
        file.write(bytes(69_120))  # the second dump is a hole
    run = run_btio(build, 9, write_deck(tmp_path, mode="r"), "--verify")
    assert_failed(run, r"dump 1, x 0, y 0, z 0, component 0 .*expected 8641, found 0; 8640 of")
    assert only_json_line(run)["mismatches"] == 8640


@pytest.mark.soak
@both_libraries
@pytest.mark.parametrize("size", [829_439, 829_441, 0])
def test_file_of_another_size_is_refused(build, tmp_path, size, io):
    deck = write_deck(tmp_path, mode="r")
    with open(tmp_path / "out" / "btio.full.out", "wb") as file:
        file.truncate(size)
    run = run_btio(build, 4, deck, "--verify", io=io)
    assert_failed(run, f"holds {size} bytes, 829440 expected")
    assert run.stdout == ""


# Decks


@pytest.mark.soak
@pytest.mark.parametrize(
    "text",
    [
        "w # mode\n0\t# method\n2 # dumps\n 12  12\t12 # grid\n{out} # directory\n",
        "w\r\n0\r\n2\r\n12 12 12\r\n{out}\r\n",
        "w\n0\n2\n12 12 12\n{out}",
        "\n# the deck of a test\nw\n0\n2\n12 12 12\n\n{out}/\n{out}/\n\n",
    ],
    ids=["comments", "dos", "no-last-newline", "blank-lines-and-appended-twice"],
)
def test_all_deck_forms_are_read(build, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "inputbt.data").write_bytes(text.format(out=tmp_path / "out").encode())
    result_of(mpiexec(4, build / "kernels" / "btio", cwd=tmp_path))
    assert (tmp_path / "out" / "btio.full.out").stat().st_size == 2 * 69_120


@pytest.mark.parametrize(
    "text, pattern",
    [
        ("", r"deck:1: the deck ends before the mode"),
        ("a\n0\n2\n12 12 12\nout\n", r"deck:1: expected mode 'w' \(write\) or 'r' \(read\), found 'a'"),
        ("w\n4\n2\n12 12 12\nout\n", r"deck:2: expected method 0 .*, 1 .*, 2 .* or 3 .*found '4'"),
        ("w\nx\n2\n12 12 12\nout\n", r"deck:2: expected method 0 .*found 'x'"),
        ("w\n0\n0\n12 12 12\nout\n", r"deck:3: expected the number of dumps.*found '0'"),
        ("w\n0\n2.5\n12 12 12\nout\n", r"deck:3: expected the number of dumps.*found '2.5'"),
        ("w\n0\n2\n12 12\nout\n", r"deck:4: expected grid points 'nx ny nz'.*found '12 12'"),
        ("w\n0\n2\n12 12 12 12\nout\n", r"deck:4: expected grid points"),
        ("w\n0\n2\n12 -12 12\nout\n", r"deck:4: expected grid points"),
        ("w\n0\n2\n12 12 4294967308\nout\n", r"deck:4: expected grid points"),
        ("w\n0\n2\n12 12 12\n# none\n", r"deck:6: the deck ends before the output directory\nhint: .*DW_JOB_STRIPED"),
        ("w\n0\n2\n12 12 12\nout\nelsewhere\n", r"deck:6: expected no second output directory"),
        ("w" * 9000, r"deck:1: line longer than"),
        ("w\n0\n2\n12 12 12\n" + "d" * 4096 + "\n", r"deck:5: expected an output directory shorter than 4096"),
        ("w\n0\n2147483647\n2147483647 2147483647 2147483647\nout\n", r"more than 2\^53 values"),
        ("w\n0\n1\n7000 7000 7000\nout\n", r"share of one dump is \d+ bytes, .* at most 2147483647\nhint: run on more"),
        ("w\n0\n2\n12 12 2\nout\n", r"2 points along z .*at least 3 needed"),
    ],
)
def test_malformed_deck_is_refused(build, tmp_path, text, pattern):
    (tmp_path / "deck").write_text(text)
    assert_refused(run_btio(build, 1, "deck", cwd=tmp_path), pattern)


@pytest.mark.parametrize("deck", ["missing", "."])
def test_unreadable_deck_is_refused(build, tmp_path, deck):
    assert_refused(run_btio(build, 4, deck, cwd=tmp_path), "No such file|Is a directory")


# Ranks and options


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ranks_must_be_a_square(build, tmp_path, ranks):
    run = run_btio(build, ranks, write_deck(tmp_path))
    assert_refused(run, rf"{ranks} ranks are not a square number\nhint: run on 1, 4, 9")


def test_cells_must_have_three_points(build, tmp_path):
    run = run_btio(build, 9, write_deck(tmp_path, grid=(12, 8, 12)))
    assert_refused(run, r"8 points along y in 3 slabs leave a cell of 2 points.*\nhint: 9 ranks need at least 9 points")


@pytest.mark.soak
@pytest.mark.parametrize(
    "flags, pattern",
    [
        (["--bogus"], "unknown option '--bogus'"),
        (["-x"], "unknown option '-x'"),
        (["--sweeps", "-1"], "--sweeps needs a whole number, 0 or more, not '-1'"),
        (["--sweeps", "many"], "--sweeps needs a whole number"),
        (["one", "--verify", "two"], "one deck is enough; unexpected 'two'"),
        (["--sweeps"], "a value is missing after '--sweeps'"),
        (["--variant", "best"], "--variant needs one of full, independent, .*epio, fortran, not 'best'"),
    ],
)
def test_bad_option_is_refused(build, flags, pattern):
    run = mpiexec(4, build / "kernels" / "btio", *flags)
    assert_refused(run, pattern + r".*\nhint: btio --help")


# Failing I/O


@both_libraries
@pytest.mark.parametrize("mode", ["w", "r"])
def test_missing_directory_fails_with_the_path(build, tmp_path, mode, io):
    deck = write_deck(tmp_path, mode=mode, out=tmp_path / "nowhere")
    run = run_btio(build, 4, deck, io=io)
    assert_failed(run, r"MPI_File_open on rank 0: .*nowhere/btio.full.out: .*\nhint: ")


@both_libraries
def test_directory_that_is_a_file_fails(build, tmp_path, io):
    (tmp_path / "file").touch()
    run = run_btio(build, 4, write_deck(tmp_path, out=tmp_path / "file"), io=io)
    assert_failed(run, r"MPI_File_(delete|open) on rank 0: .*file/btio.full.out")


@both_libraries
@pytest.mark.parametrize("ranks", few(4, 1))
def test_file_size_limit_fails_without_verify_and_without_a_hang(build, tmp_path, ranks, io):
    """The limit is set in the ranks and is above what Open MPI needs for its own shared memory."""
    limit = ["bash", "-c", 'ulimit -f 16384; exec "$@"', "bash"]
    deck = write_deck(tmp_path, dumps=40, grid=(24, 24, 24))
    run = mpiexec(ranks, *limit, build / "kernels" / "btio", deck, io=io)
    assert_failed(run, r"MPI_File_(write_at_all|get_size) on rank 0: .*\nhint: .*(full|limit)")
    assert run.stdout == ""
    assert (tmp_path / "out" / "btio.full.out").stat().st_size <= 16 * 1024 * 1024


@both_libraries
@pytest.mark.parametrize("ranks", few(4, 1))
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, ranks, io):
    deck = write_deck(tmp_path)
    run = run_btio(build, ranks, deck, io=io, before=with_small_disk(tmp_path / "out"))
    assert_failed(run, r"MPI_File_(write_at_all|get_size) on rank 0: .*\nhint: .*full")
    assert run.stdout == ""


# The partition

PRINT_CELLS = r"""
#include "btio/partition.h"
#include <stdio.h>
#include <stdlib.h>

const char kernel_name[] = "print_cells";

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  struct deck deck = {.grid = {atoi(argv[1]), atoi(argv[2]), atoi(argv[3])}, .dumps = 1};
  struct partition partition;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!partition_make(&deck, MPI_COMM_WORLD, &partition))
    return 1;
  for (int i = 0; i < partition.side; i++) {
    const struct cell *c = &partition.cells[i];
    printf("%d %d %d %d %d %d %d %d\n", rank, i, c->low[0], c->low[1], c->low[2], c->size[0], c->size[1], c->size[2]);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.soak
@pytest.mark.parametrize("ranks, grid", [(9, (13, 17, 12)), (16, (12, 15, 18))])
def test_partition_is_the_diagonal_multi_partition_of_bt(tmp_path, ranks, grid):
    (tmp_path / "print_cells.c").write_text(PRINT_CELLS)
    program = tmp_path / "print_cells"
    sources = [tmp_path / "print_cells.c", SOURCES / "btio" / "partition.c", SOURCES / "harness" / "message.c"]
    subprocess.run(["mpicc", "-std=c11", f"-I{SOURCES}", *map(str, sources), "-o", str(program)], check=True)

    run = mpiexec(ranks, program, *grid)

    assert run.returncode == 0, run.stderr
    cells = {tuple(map(int, line.split())) for line in run.stdout.splitlines()}
    assert cells == {cell for rank in range(ranks) for cell in cells_by_recurrence(rank, ranks, grid)}


def cells_by_recurrence(rank, ranks, grid):
    """NAS BT's own rule: from one cell to the next x goes up, y down, z up, around the ends."""
    side = int(ranks**0.5)
    at = [rank % side, rank // side, 0]
    for index in range(side):
        cuts = [cut(points, side, slab) for points, slab in zip(grid, at)]
        yield (rank, index, *(low for low, _ in cuts), *(size for _, size in cuts))
        at = [(at[0] + 1) % side, (at[1] - 1) % side, at[2] + 1]


def cut(points, side, slab):
    """Low end and size of one slab; the first `excess` slabs are one point longer."""
    size, excess = divmod(points, side)
    if slab < excess:
        return slab * (size + 1), size + 1
    return excess * (size + 1) + (slab - excess) * size, size
