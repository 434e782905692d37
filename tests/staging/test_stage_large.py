"""Large files of a stage-out: how their bytes reach the device."""

import collections
import os
import random
import re

import pytest

from support.trees import stage_list, stage, traced_calls

BLOCK = 4 << 20
MIB = 1 << 20
SEED = 20170502
CALLS = "openat,pwrite64,pread64,fsync"
WORDS = ("--threads", "1", "--piece", "8MiB")
# A call, then either what it opens and how, or a file with where and how much.
CALL = re.compile(
    r"^\d+ +(?P<call>\w+)\("
    r"(?:AT_FDCWD[^,]*, \"(?P<opened>[^\"]*)\", (?P<flags>[A-Z_|]+)(?:.* = \d+<(?P<found>[^>]*)>)?"
    r"|\d+<(?P<file>[^>]*)>(?P<rest>[^<]*))"
)


@pytest.fixture
def source(job):
    """A file of three pieces with an odd end, and one whose data begin and end where no block does."""
    directory = job.directory / "in"
    directory.mkdir()
    (directory / "whole").write_bytes(random.Random(SEED).randbytes(20 * MIB + 17))
    with open(directory / "holes", "wb") as file:
        file.truncate(30 * MIB)
        file.seek(5 * MIB + 4096)
        file.write(random.Random(SEED).randbytes(6 * MIB))
    return directory


def staged(job, *options, direction="out"):
    """Calls on the temporary files: what, which, and the rest of the line."""
    lines, done = traced_calls(job, CALLS, "stage", direction, *WORDS, *options, "in", "out")
    assert done.returncode == 0, done.stderr
    found = [match for line in lines if (match := CALL.match(line))]
    named = [(one["call"], one["found"] or one["opened"] or one["file"], one["flags"] or one["rest"]) for one in found]
    return [(call, name, rest) for call, name, rest in named if name.endswith(".part")]


def moved(calls, call):
    """Where and how much: of each file."""
    ranges = collections.defaultdict(list)
    for made, name, rest in calls:
        if made == call:
            length, at = re.search(r"(\d+), (\d+)\)?", rest[rest.rindex('"') :]).groups()
            ranges[name].append((int(at), int(length)))
    return ranges


@pytest.mark.parametrize("options", [(), ("--rate", "40MB")])
def test_writes_stay_within_blocks_and_whole_blocks_bypass_the_page_cache(job, source, options):
    calls = staged(job, *options)
    writes = moved(calls, "pwrite64")
    assert sorted(sum(length for _, length in ranges) for ranges in writes.values()) == [6 * MIB, 20 * MIB + 17]
    for at, length in (one for ranges in writes.values() for one in ranges):
        assert at // BLOCK == (at + length - 1) // BLOCK
    assert [name for call, name, flags in calls if call == "openat" and "O_WRONLY" in flags and "O_DIRECT" in flags]
    for name in ("whole", "holes"):
        assert (job.directory / "out" / name).read_bytes() == (source / name).read_bytes()
    assert (job.directory / "out" / "holes").stat().st_blocks * 512 < 7 * MIB


def test_stage_in_uses_the_page_cache(job, source):
    """The job that reads it is on this node."""
    opened = [flags for call, _, flags in staged(job, direction="in") if call == "openat"]
    assert opened and not any("O_DIRECT" in flags for flags in opened)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_verification_reads_after_sync_and_stage_out_bypasses_page_cache(job, source, direction):
    calls = staged(job, "--verify", "end", direction=direction)
    for name in {name for _, name, _ in calls}:
        order = [call for call, other, _ in calls if other == name and call != "openat"]
        synced = order.index("fsync")
        assert "pwrite64" not in order[synced:] and "pread64" not in order[:synced]
        read, written = moved(calls, "pread64")[name], moved(calls, "pwrite64")[name]
        assert sum(length for _, length in read) == sum(length for _, length in written)
        flags = [flags for call, other, flags in calls if other == name and call == "openat" and "O_RDONLY" in flags]
        assert any("O_DIRECT" in one for one in flags) == (direction == "out")


# In pieces, and by the batch.
@pytest.mark.parametrize(("size", "lost_block"), [(20 * MIB + 17, 2), (6 * MIB, 0)])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_block_lost_by_the_device_is_found_by_verification(job, source, direction, size, lost_block):
    (source / "holes").unlink()
    os.truncate(source / "whole", size)
    in_the_way = job.directory / "out" / "whole"
    in_the_way.mkdir(parents=True)
    done = stage(job, direction, *WORDS, "--verify", "end", "in", "out")
    assert done.returncode == 123, done.stderr
    in_the_way.rmdir()
    (one,) = stage_list(job)
    part = job.directory / "out" / f".forebay-{one['id']}-1.part"
    lost = ["-P", part, "-e", f"inject=pwrite64:retval={BLOCK}:when={lost_block + 1}"]  # said to be written, and is not
    lines, done = traced_calls(job, CALLS, "stage", "retry", one["id"], options=lost)
    assert len([line for line in lines if "(INJECTED)" in line and f"{BLOCK}, {lost_block * BLOCK})" in line]) == 1, (
        lines
    )
    assert done.returncode == 123 and "what was written reads back differently" in done.stderr, done.stderr
    assert list((job.directory / "out").iterdir()) == []
