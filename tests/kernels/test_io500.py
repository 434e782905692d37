"""The phases of IO500: which bytes and names they make, the stonewall, and what they find out."""

import json
import os
import pathlib
import subprocess

import pytest

from support.kernels import (
    assert_failed,
    assert_refused,
    flip_byte,
    mpiexec,
    only_json_line,
    result_of,
    with_small_disk,
)
from support.strace import few

EASY_BYTES = 2 << 20
HARD_BYTES = 47008
FOLDERS = ("ior-easy", "ior-hard", "mdtest-easy", "mdtest-hard")
#: What a write phase made -> the phase that reads it.
READERS = {
    "ior-easy-write": "ior-easy-read",
    "ior-hard-write": "ior-hard-read",
    "mdtest-easy-write": "mdtest-easy-stat",
    "mdtest-hard-write": "mdtest-hard-read",
}


@pytest.fixture
def top(tmp_path):
    """The directory of the benchmark, as its driver makes it."""
    for name in FOLDERS:
        (tmp_path / "run" / name).mkdir(parents=True)
    return tmp_path / "run"


def run_phase(build, ranks, top, phase, *flags, **options):
    return mpiexec(ranks, build / "kernels" / "io500", "-d", top, *flags, phase, **options)


def item(top, folder, rank, index):
    tree = f"mdtest_tree.{rank}.0" if folder == "mdtest-easy" else "mdtest_tree.0"
    return top / folder / "test-dir.0-0" / tree / f"file.mdtest.{rank}.{index}"


def test_hard_file_has_a_piece_of_each_rank_in_turn(build, top):
    written = result_of(run_phase(build, 3, top, "ior-hard-write", "--limit", 5))
    assert (written["operations"], written["operations_of_rank"], written["bytes"]) == (15, 5, 15 * HARD_BYTES)
    data = (top / "ior-hard" / "file").read_bytes()
    assert len(data) == 15 * HARD_BYTES
    pieces = [data[at : at + HARD_BYTES] for at in range(0, len(data), HARD_BYTES)]
    # Between two stamps the bytes of a rank are the same, those of two ranks differ.
    bodies = [piece[8:4096] for piece in pieces]
    assert [bodies[at] == bodies[at % 3] for at in range(15)] == [True] * 15
    assert len(set(bodies)) == 3 and len(set(pieces)) == 15


def test_every_rank_has_an_easy_file_of_equal_length(build, top):
    written = result_of(run_phase(build, 3, top, "ior-easy-write", "--limit", 2))
    files = sorted((top / "ior-easy").iterdir())
    assert [path.name for path in files] == [f"ior_file_easy.{rank:08}" for rank in range(3)]
    assert {path.stat().st_size for path in files} == {2 * EASY_BYTES}
    assert written["bytes"] == 6 * EASY_BYTES


@pytest.mark.parametrize("folder", ["mdtest-easy", "mdtest-hard"])
def test_items_have_the_names_and_sizes_of_mdtest(build, top, folder):
    result_of(run_phase(build, 2, top, f"{folder}-write", "--limit", 3))
    size = 0 if folder == "mdtest-easy" else 3901
    for rank in range(2):
        assert [item(top, folder, rank, index).stat().st_size for index in range(3)] == [size] * 3
    result_of(run_phase(build, 2, top, f"{folder}-delete", "--limit", 3, "--shift", 1))
    assert list((top / folder).iterdir()) == []


@pytest.mark.soak
@pytest.mark.parametrize("write", few(*READERS, kept=2))
def test_ranks_reach_the_same_count_after_the_stonewall(build, top, write):
    limit = 2_000_000 if write.startswith("mdtest") else 100_000 if "hard" in write else 500
    written = result_of(run_phase(build, 3, top, write, "--limit", limit, "--stonewall", 1))
    assert written["operations"] == 3 * written["operations_of_rank"]
    assert written["stonewall_operations"] <= written["operations"]
    assert written["stonewalled"] == (
        written["operations_of_rank"] < limit or written["stonewall_operations"] < 3 * limit
    )
    count = ["--limit", written["operations_of_rank"], "--shift", 1, "--verify"]
    read = result_of(run_phase(build, 3, top, READERS[write], *count))
    assert (read["operations"], read["verified"], read["mismatches"]) == (written["operations"], True, 0)
    assert read["bytes"] == (0 if "stat" in READERS[write] else written["bytes"])


@pytest.mark.parametrize("folder, place", [("ior-easy", EASY_BYTES + 5000), ("ior-hard", 4 * HARD_BYTES + 17)])
def test_damaged_byte_is_named(build, top, folder, place):
    result_of(run_phase(build, 2, top, f"{folder}-write", "--limit", 4))
    path = top / folder / ("file" if folder == "ior-hard" else "ior_file_easy.00000001")
    flip_byte(path, place)
    run = run_phase(build, 2, top, f"{folder}-read", "--limit", 4, "--verify", "--shift", 1)
    assert_failed(run, rf"{path.name}: wrong value at byte {place}: found \d+; 1 of all bytes")
    assert (only_json_line(run)["verified"], only_json_line(run)["mismatches"]) == (False, 1)


def test_data_of_another_run_are_wrong(build, top):
    result_of(run_phase(build, 2, top, "ior-hard-write", "--limit", 4, "--signature", 1))
    run = run_phase(build, 2, top, "ior-hard-read", "--limit", 4, "--signature", 2, "--verify")
    assert_failed(run, "wrong value at byte 0")


def test_damaged_item_is_named(build, top):
    result_of(run_phase(build, 2, top, "mdtest-hard-write", "--limit", 9))
    flip_byte(item(top, "mdtest-hard", 1, 7), 3000)
    run = run_phase(build, 2, top, "mdtest-hard-read", "--limit", 9, "--verify")
    assert_failed(run, r"file\.mdtest\.1\.7: wrong value: found \d+; 1 values")
    item(top, "mdtest-hard", 0, 4).write_bytes(b"short")
    run = run_phase(build, 2, top, "mdtest-hard-read", "--limit", 9, "--verify")
    assert_failed(run, r"read on rank 0: .*: file\.mdtest\.0\.4: the file has another size")
    run = run_phase(build, 2, top, "mdtest-hard-stat", "--limit", 9, "--verify")
    assert_failed(run, r"file\.mdtest\.0\.4: wrong kind or size: found 5; 1 values")


def test_random_reads_are_compared_with_what_was_written(build, top):
    result_of(run_phase(build, 2, top, "ior-easy-write", "--limit", 2))
    read = result_of(run_phase(build, 2, top, "ior-rnd4K-easy-read", "--limit", 2, "--verify", "--shift", 1))
    assert (read["bytes"], read["calls"], read["verified"]) == (4 * 4096, 4, True)
    path = top / "ior-easy" / "ior_file_easy.00000000"
    path.write_bytes(bytes(path.stat().st_size))
    run = run_phase(build, 2, top, "ior-rnd4K-easy-read", "--limit", 2, "--verify", "--shift", 1)
    assert_failed(run, "ior_file_easy.00000000: wrong value")


@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_find_sees_what_find_of_the_system_sees(build, top, ranks):
    (top / "timestampfile").touch()
    os.utime(top / "timestampfile", (1_000_000_000, 1_000_000_000))
    result_of(run_phase(build, 2, top, "mdtest-hard-write", "--limit", 120))
    result_of(run_phase(build, 2, top, "mdtest-easy-write", "--limit", 30))
    deep = top / "mdtest-easy" / "a" / "01" / "c"
    deep.mkdir(parents=True)
    for name, size in (("x01y", 3901), ("01", 3900), ("x10", 3901)):
        (deep / name).write_bytes(bytes(size))
    old = deep / "old01"
    old.write_bytes(bytes(3901))
    os.utime(old, (1, 1))
    (deep / "link01").symlink_to("x01y")
    (deep / "loop01").symlink_to("..")
    words = ["find", top, "-mindepth", "1"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = ["-newer", top / "timestampfile", "-type", "f", "-size", "3901c", "-name", "*01*"]
    matched = subprocess.run([*words, *wanted], capture_output=True, text=True, check=True).stdout.splitlines()
    assert any("x01y" in name for name in matched) and len(matched) > 1
    result = result_of(run_phase(build, ranks, top, "find"))
    assert (result["operations"], result["found"]) == (len(listed), len(matched))


def test_placement_names_this_node_once(build, top):
    result = result_of(run_phase(build, 3, top, "placement"))
    assert (result["nodes"], result["shift"]) == ([os.uname().nodename], 1)
    assert result_of(run_phase(build, 1, top, "placement"))["shift"] == 0


def test_existing_names_and_links_are_refused(build, top):
    victim = top.parent / "victim"
    victim.write_text("mine")
    (top / "ior-hard" / "file").symlink_to(victim)
    assert_failed(run_phase(build, 2, top, "ior-hard-write"), r"open on rank 0: .*ior-hard/file: File exists")
    tree = top / "mdtest-easy" / "test-dir.0-0"
    tree.symlink_to(top.parent)
    assert_failed(run_phase(build, 2, top, "mdtest-easy-write"), r"mkdir on rank 0: .*test-dir.0-0: File exists")
    assert victim.read_text() == "mine" and sorted(os.listdir(top.parent)) == ["run", "victim"]


@pytest.mark.parametrize(
    "phase, calls", [("ior-hard-write", "write|fsync|close"), ("mdtest-hard-write", "create|syncfs")]
)
def test_full_disk_fails_on_all_ranks_without_a_hang(build, tmp_path, phase, calls):
    disk = tmp_path / "disk"
    disk.mkdir()
    script = pathlib.Path(tmp_path / "go.sh")
    folders = " ".join(f'"{disk}/{name}"' for name in FOLDERS)
    script.write_text(f'#!/bin/sh\nmkdir {folders} && exec "$@"\n')
    script.chmod(0o755)
    run = run_phase(build, 2, disk, phase, "--limit", 5000, before=[*with_small_disk(disk, "2m"), script])
    assert_failed(run, rf"({calls}) on rank \d: .*(No space left|another size)(.|\n)*hint: is the file system full")


@pytest.mark.parametrize(
    "words, pattern",
    [
        (["nonsense"], "there is no phase 'nonsense'\nhint: io500 --help lists the phases"),
        ([], "no phase is named"),
        (["find", "find"], "one phase is enough; unexpected 'find'"),
        (["--limit", "0", "find"], "--limit needs a whole number, 1 or more, not '0'"),
    ],
)
def test_bad_command_line_is_refused(build, top, words, pattern):
    assert_refused(mpiexec(2, build / "kernels" / "io500", "-d", top, *words), pattern)


def test_missing_directory_is_refused_and_a_missing_file_named(build, top):
    assert_refused(mpiexec(1, build / "kernels" / "io500", "find"), "no directory is named")
    assert_failed(run_phase(build, 2, top, "find"), r"open on rank 0: .*No such file(.|\n)*timestampfile")
    assert_failed(run_phase(build, 2, top / "no", "placement"), r"on node .*: No such file")
    assert_failed(
        run_phase(build, 2, top, "ior-easy-read"), r"ior_file_easy.00000000: No such file(.|\n)*earlier phase"
    )


def test_one_line_of_json_has_the_fields_of_all_kernels(build, top):
    run = run_phase(build, 1, top, "mdtest-easy-write", "--limit", 1)
    fields = {"kernel", "variant", "ranks", "bytes", "calls", "path", "mode", "io_s", "total_s", "verified", "mpi"}
    assert fields <= json.loads(run.stdout).keys()
