"""Replib: where the blocks of the report lie, and what stands in them.

A value is its index in the file, from 1, so that the expected file follows from its size alone.
"""

import array

import pytest

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


def run_replib(build, ranks, directory, *flags, **options):
    out = directory / "out"
    out.mkdir(exist_ok=True)
    return mpiexec(ranks, build / "kernels" / "replib", "-o", out / "currents.bbp", "-t", 0, *flags, **options)


def report(directory):
    values = array.array("f")
    values.frombytes((directory / "out" / "currents.bbp").read_bytes())
    return values


def expected(count):
    return array.array("f", (index % 16777213 + 1 for index in range(count)))


def distribution(directory, *lines):
    path = directory / "blocks.csv"
    path.write_text("".join(line + "\n" for line in lines))
    return path


@pytest.mark.soak
@pytest.mark.parametrize("ranks, io", [(1, "ompio"), (4, "ompio"), (4, "romio321")])
def test_random_blocks_fill_the_report_without_a_gap(build, tmp_path, ranks, io):
    run = run_replib(build, ranks, tmp_path, "-c", 11, "-s", 3, "-r", 5, "--verify", "--sync", io=io)
    result = result_of(run)
    # 11 cells of 100 to 350 floats, 3 simulation steps in a block
    assert 11 * 100 * 12 <= result["step_bytes"] <= 11 * 350 * 12
    assert result["bytes"] == 5 * result["step_bytes"]
    assert report(tmp_path) == expected(result["bytes"] // 4)
    facts = {"kernel": "replib", "variant": "rnd1b", "style": "ior", "calls": 5 * ranks, "mode": "w", "verified": True}
    assert {key: result[key] for key in facts} == facts
    assert result["io_s"] >= result["write_s"] > 0 == result["read_s"]


def test_random_blocks_hold_the_same_cells_on_any_number_of_ranks(build, tmp_path):
    sizes = {result_of(run_replib(build, ranks, tmp_path, "-c", 20))["step_bytes"] for ranks in (1, 3)}
    assert len(sizes) == 1


def test_blocks_without_a_size_file_are_those_of_the_published_generator(build, tmp_path):
    result = result_of(run_replib(build, 2, tmp_path, "-w", "file1b", "-r", 2, "-v"))
    assert (result["step_bytes"], result["bytes"]) == (2 * 665_600, 4 * 665_600)
    assert report(tmp_path) == expected(665_600)


@pytest.mark.soak
@pytest.mark.parametrize("invert", [False, True])
def test_blocks_of_a_file_are_in_rank_order(build, tmp_path, invert):
    """Damage shows whose block a byte is in: 40, 400 and 80 bytes, or the other way round."""
    lines = distribution(tmp_path, "2,2,80,0", "0,3,24,16,0,0", "1,2,400,0", "7,2,1,0")
    flags = ["-w", "file1b", "-f", lines, "-r", 3, "--verify", *(["--invert"] if invert else [])]
    result = result_of(run_replib(build, 3, tmp_path, *flags))
    assert (result["variant"], result["step_bytes"], result["bytes"]) == ("file1b", 520, 1560)
    assert report(tmp_path) == expected(390)
    flip_byte(tmp_path / "out" / "currents.bbp", 520 + 60)
    run = run_replib(build, 3, tmp_path, *flags, "--read")
    owner = 0 if invert else 1
    assert_failed(run, rf"step 1, byte 580, of rank {owner} .*expected 146, found .*; 1 of all")
    assert (only_json_line(run)["verified"], only_json_line(run)["mismatches"]) == (False, 1)


@pytest.mark.soak
def test_read_mode_reads_and_compares(build, tmp_path, io="romio321"):
    result_of(run_replib(build, 4, tmp_path, "-r", 3, io=io))
    result = result_of(run_replib(build, 4, tmp_path, "-r", 3, "--read", "--verify", io=io))
    assert (result["mode"], result["verified"], result["calls"]) == ("r", True, 12)
    assert result["read_s"] > 0 == result["write_s"] == result["compute_s"]
    assert_failed(run_replib(build, 4, tmp_path, "-r", 4, "--read", io=io), r"holds \d+ bytes, \d+ expected\nhint: ")


def test_work_between_steps_takes_the_time_of_the_option(build, tmp_path):
    result = result_of(run_replib(build, 2, tmp_path, "-r", 3, "-t", 50))
    assert result["style"] == "reportinglib"
    assert result["compute_s"] >= 0.15


@pytest.mark.soak
@pytest.mark.parametrize(
    "flags, pattern",
    [
        (["-w", "file2b"], "--write needs one of rnd1b, file1b, fileNb, not 'file2b'"),
        (["-w", "fileNb"], "--write fileNb needs --file"),
        (["-b", "adios"], "--backend needs one of mpiio, h5p, not 'adios'"),
        (["-b", "h5p"], "--backend h5p goes with --write file1b only"),
        (["-w", "file1b", "-r", "2000000000", "-f", "big"], "larger than 2.63 bytes\nhint: take fewer --rep-steps"),
        (["-r", "0"], "--rep-steps needs a whole number, 1 or more, not '0'"),
        (["-f", "x"], "--file belongs to --write file1b or fileNb"),
        (["-c", "3"], "a rank has nothing to write\nhint: .*--numcells"),
        (["-s", "2000000000"], "a block is larger than 2 GiB"),
        (["-o", ""], "--output needs a text"),
        (["-w", "file1b", "-f", "nowhere"], "nowhere: No such file"),
    ],
)
def test_bad_option_is_refused(build, tmp_path, flags, pattern):
    big = distribution(tmp_path, *(f"{rank},2,2147483644,0" for rank in range(4)))
    flags = [big if flag == "big" else flag for flag in flags]
    assert_refused(run_replib(build, 4, tmp_path, *flags), pattern)


@pytest.mark.soak
@pytest.mark.parametrize(
    "lines, pattern",
    [
        (["0,2,8,0"], "blocks.csv: no line for rank 1\nhint: 2 ranks need"),
        (["0,2,8,0", "1,2,x,0"], "blocks.csv:2: expected as many chunk sizes"),
        (["0,2,6,0"], "blocks.csv:1: expected blocks of whole floats"),
        (["0,2,4000000000,0"], "blocks.csv:1: expected a block below 2 GiB"),
        (["0,2,8,0", "1,2,0,0"], "a rank has nothing to write"),
    ],
)
def test_bad_file_of_sizes_is_refused(build, tmp_path, lines, pattern):
    path = distribution(tmp_path, *lines)
    assert_refused(run_replib(build, 2, tmp_path, "-w", "file1b", "-f", path), pattern)


# fileNb: every chunk in its own place


SCATTERED = ["0,4,8,16,4,0,40,88", "1,3,32,20,8,68", "2,3,12,0,56,92", "3,1"]


def owners(lines, step_bytes):
    """Which rank each float of a step belongs to."""
    places = [None] * (step_bytes // 4)
    for line in lines:
        rank, count, *numbers = map(int, line.split(","))
        for size, offset in zip(numbers[: count - 1], numbers[count - 1 :]):
            for place in range(offset // 4, (offset + size) // 4):
                assert places[place] is None
                places[place] = rank
    return places


@pytest.mark.parametrize("invert", few(True, False))
@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_chunks_are_at_the_offset_of_their_line(build, tmp_path, invert, io):
    """A float of each rank is damaged in turn: the rank that reads it is the one its chunk belongs to."""
    flags = ["-w", "fileNb", "-f", distribution(tmp_path, *SCATTERED), "-r", 3, "-v", *(["-i"] if invert else [])]
    result = result_of(run_replib(build, 3, tmp_path, *flags, io=io))
    assert (result["variant"], result["backend"], result["calls"]) == ("fileNb", "mpiio", 9)
    assert (result["step_bytes"], result["bytes"]) == (92, 276)
    assert report(tmp_path) == expected(69)
    places = owners(SCATTERED, 92)
    for place in (0, 2, 14, 22):
        path = tmp_path / "out" / "currents.bbp"
        flip_byte(path, 2 * 92 + 4 * place)
        owner = 2 - places[place] if invert else places[place]
        run = run_replib(build, 3, tmp_path, *flags, "--read", io=io)
        assert_failed(
            run, rf"step 2, byte {184 + 4 * place}, of rank {owner} .*expected {46 + place + 1}, found .*; 1 of all"
        )
        flip_byte(path, 2 * 92 + 4 * place)


@pytest.mark.soak
@pytest.mark.parametrize(
    "lines, pattern",
    [
        (["0,3,8,8,16,0", "1,2,8,8"], "blocks.csv:1: expected chunks in ascending order"),
        (["0,3,8,8,0,4", "1,2,8,16"], "blocks.csv:1: expected chunks in ascending order"),
        (["0,3,8,8,0", "1,2,8,8"], "blocks.csv:1: expected as many chunk offsets"),
        (["0,3,6,2,0,8", "1,2,8,8"], "blocks.csv:1: expected chunks of whole floats"),
        (["0,2,8,2", "1,2,8,8"], "blocks.csv:1: expected chunks of whole floats"),
        (["0,2,8,0", "1,2,8,4"], "leave byte 8 of a step to none or to two of them\nhint: "),
        (["0,2,8,0", "1,2,8,12"], "leave byte 8 of a step to none"),
        (["0,2,8,0", "1,1"], "a rank has nothing to write"),
    ],
)
def test_chunks_that_do_not_fill_a_step_are_refused(build, tmp_path, lines, pattern):
    path = distribution(tmp_path, *lines)
    assert_refused(run_replib(build, 2, tmp_path, "-w", "fileNb", "-f", path), pattern)


@pytest.mark.soak
def test_rank_can_have_thousands_of_chunks(build, tmp_path):
    """4 ranks in turn, 4 bytes each: no two values of a rank lie side by side."""
    chunks = 5000
    lines = [
        ",".join(map(str, [rank, chunks + 1, *([4] * chunks), *range(4 * rank, 16 * chunks, 16)])) for rank in range(4)
    ]
    flags = ["-w", "fileNb", "-f", distribution(tmp_path, *lines), "-r", 2, "-v"]
    assert result_of(run_replib(build, 4, tmp_path, *flags))["step_bytes"] == 16 * chunks
    assert report(tmp_path) == expected(8 * chunks)


@both_libraries
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, io):
    (tmp_path / "out").mkdir()
    run = run_replib(build, 4, tmp_path, "-w", "file1b", "-r", 2, io=io, before=with_small_disk(tmp_path / "out"))
    assert_failed(run, r"MPI_File_(write_all|get_size) on rank 0: .*\nhint: .*full")
    assert run.stdout == ""


def test_missing_directory_fails_with_the_path(build, tmp_path):
    run = run_replib(build, 2, tmp_path, "-o", tmp_path / "nowhere" / "x")
    assert_failed(run, r"MPI_File_open on rank 0: .*nowhere/x: .*\nhint: ")
