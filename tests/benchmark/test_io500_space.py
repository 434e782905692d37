"""How much a run may write."""

import pytest

from forebay.bench.errors import BenchError
from forebay.bench.space import Space, default_data_bytes, limits, space_of

GIB = 1 << 30
DISK = Space("ext4", 100 * GIB, 10_000_000, 4096, False)
#: What an operation takes, by folder: of mdtest a name with its inode, and blocks.
EACH_BYTES = {"ior-easy": 2 << 20, "ior-hard": 47008, "mdtest-easy": 4096, "mdtest-hard": 8192}


@pytest.mark.parametrize("ranks", [1, 3, 64])
@pytest.mark.parametrize("data_bytes", [GIB, 7 * GIB + 12345, 100 * GIB])
def test_all_ranks_together_stay_within_the_data(ranks, data_bytes):
    found = limits(data_bytes, ranks, DISK)
    written = sum(EACH_BYTES[folder] * count * ranks for folder, count in found.operations.items())
    assert written == found.data_bytes <= data_bytes
    assert all(count >= 1 for count in found.operations.values())


def test_half_of_what_is_free_is_the_default():
    assert default_data_bytes(DISK) == 50 * GIB


def test_files_stay_within_half_of_the_free_inodes():
    few = Space("ext4", 100 * GIB, 1000, 4096, False)
    found = limits(100 * GIB, 4, few)
    assert 4 * (found.operations["mdtest-easy"] + found.operations["mdtest-hard"]) <= 500


def test_limits_are_at_most_those_of_io500():
    found = limits(10**18, 1, Space("lustre", 10**19, None, 4096, False))
    assert found.operations == {
        "ior-easy": 4_960_000, "ior-hard": 10_000_000, "mdtest-easy": 1_000_000, "mdtest-hard": 1_000_000,
    }  # fmt: skip


def test_large_blocks_count_for_small_files():
    large = Space("gpfs", 100 * GIB, None, 1 << 20, False)
    assert limits(GIB, 1, large).operations["mdtest-hard"] == GIB * 3 // 16 // (4096 + (1 << 20))


def test_more_than_is_free_is_refused_with_both_numbers():
    with pytest.raises(BenchError, match=r"--data .*200 GiB\) is more than the free space, .*100 GiB\)"):
        limits(200 * GIB, 2, DISK)
    with pytest.raises(BenchError, match="free memory"):
        limits(2 * GIB, 2, Space("tmpfs", GIB, None, 4096, True))


@pytest.mark.parametrize("data_bytes, names", [(1 << 20, 10_000_000), (GIB, 5)])
def test_too_little_for_all_ranks_is_refused_with_what_is_needed(data_bytes, names):
    with pytest.raises(BenchError, match="too little for 4 ranks") as caught:
        limits(data_bytes, 4, Space("ext4", 100 * GIB, names, 4096, False))
    assert "--data 16MiB" in caught.value.hint
    assert min(limits(16 << 20, 4, DISK).operations.values()) >= 1


def test_memory_counts_where_files_are_in_memory(tmp_path):
    memory = space_of("/dev/shm")
    assert memory.in_memory and memory.kind == "tmpfs"
    available = int(next(line for line in open("/proc/meminfo") if "MemAvailable" in line).split()[1]) << 10
    assert memory.free_bytes < 1.1 * available
    assert space_of(tmp_path).free_bytes > 0
