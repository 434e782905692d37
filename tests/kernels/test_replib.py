"""Replib: where the blocks of the report lie, and what stands in them.

A value is its index in the file, from 1, so that the expected file follows from its size alone.
"""

import array

import pytest

from kernel import assert_failed, assert_refused, both_libraries, flip_byte, mpiexec, only_json_line, result_of, with_small_disk


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


def test_without_a_file_of_sizes_blocks_are_those_of_the_published_generator(build, tmp_path):
    result = result_of(run_replib(build, 2, tmp_path, "-w", "file1b", "-r", 2, "-v"))
    assert (result["step_bytes"], result["bytes"]) == (2 * 665_600, 4 * 665_600)
    assert report(tmp_path) == expected(665_600)


@pytest.mark.parametrize("invert", [False, True])
def test_blocks_of_a_file_lie_in_the_order_of_ranks(build, tmp_path, invert):
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


def test_read_mode_reads_and_compares(build, tmp_path, io="romio321"):
    result_of(run_replib(build, 4, tmp_path, "-r", 3, io=io))
    result = result_of(run_replib(build, 4, tmp_path, "-r", 3, "--read", "--verify", io=io))
    assert (result["mode"], result["verified"], result["calls"]) == ("r", True, 12)
    assert result["read_s"] > 0 == result["write_s"] == result["compute_s"]
    assert_failed(run_replib(build, 4, tmp_path, "-r", 4, "--read", io=io), r"holds \d+ bytes, \d+ expected\nhint: ")


def test_work_between_the_steps_takes_its_time(build, tmp_path):
    result = result_of(run_replib(build, 2, tmp_path, "-r", 3, "-t", 50))
    assert result["style"] == "reportinglib"
    assert result["compute_s"] >= 0.15


@pytest.mark.parametrize(
    "flags, pattern",
    [
        (["-w", "fileNb"], "--write needs one of rnd1b, file1b, not 'fileNb'"),
        (["-r", "0"], "--rep-steps needs a whole number, 1 or more, not '0'"),
        (["-f", "x"], "--file belongs to --write file1b"),
        (["-c", "1"], "a rank has nothing to write\nhint: .*--numcells"),
        (["-s", "2000000000"], "a block is larger than 2 GiB"),
        (["-o", ""], "--output needs a text"),
        (["-w", "file1b", "-f", "nowhere"], "nowhere: No such file"),
    ],
)
def test_bad_option_is_refused(build, tmp_path, flags, pattern):
    assert_refused(run_replib(build, 2, tmp_path, *flags), pattern)


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


@both_libraries
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, io):
    (tmp_path / "out").mkdir()
    run = run_replib(build, 4, tmp_path, "-w", "file1b", "-r", 2, io=io, before=with_small_disk(tmp_path / "out"))
    assert_failed(run, r"MPI_File_(write_all|get_size) on rank 0: .*\nhint: .*full")
    assert run.stdout == ""


def test_missing_directory_fails_with_the_path(build, tmp_path):
    run = run_replib(build, 2, tmp_path, "-o", tmp_path / "nowhere" / "x")
    assert_failed(run, r"MPI_File_open on rank 0: .*nowhere/x: .*\nhint: ")
