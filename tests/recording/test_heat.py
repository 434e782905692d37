"""When the bytes were moved, by whom; moments, sizes and ranks of MPI-IO files."""

import json
import re
import subprocess

import pytest

from support.mpi import PROGRAMS, PROJECT, only_file


def heat_of(report: dict, layer: str) -> dict:
    [heat] = [heat for heat in report["heat"] if heat["layer"] == layer]
    return heat


def row_sums(heat: dict, direction: str) -> dict[int, int]:
    sums: dict[int, int] = {}
    for row, column, count in heat[direction]:
        assert 0 <= row < heat["rows"] and 0 <= column < heat["bins"] <= 128
        sums[row] = sums.get(row, 0) + count
    return sums


def test_bytes_are_in_the_bins_of_their_time(mpi, tmp_path):
    program = mpi.compiled("direct", "-DWITH_MPI", PROGRAMS / "direct.c")
    report, _ = mpi.report(2, program, "slow", tmp_path / "f")
    heat = heat_of(report, "posix")
    assert (heat["ranks_per_row"], heat["rows"]) == (1, 2)
    assert row_sums(heat, "write") == {0: 2000, 1: 2000}
    for row in (0, 1):
        bins = sorted(column for at, column, _ in heat["write"] if at == row)
        assert bins[-1] - bins[0] >= 3, "350 ms lie between the two writes"


@pytest.mark.soak
@pytest.mark.parametrize("case, written, read", [("independent", 4000, 1000), ("split", 1000, 1000)])
def test_heat_map_has_program_calls_and_system_calls(mpi, tmp_path, case, written, read):
    report, _ = mpi.report(2, mpi.observed(), case, tmp_path / "file")
    for layer in ("mpiio", "posix"):
        heat = heat_of(report, layer)
        assert sum(row_sums(heat, "write").values()) == 2 * written
        assert sum(row_sums(heat, "read").values()) == 2 * read
    assert row_sums(heat_of(report, "mpiio"), "write") == {0: written, 1: written}


def test_heat_map_has_moments_sizes_and_ranks_of_an_mpi_file(mpi, tmp_path):
    report, _ = mpi.report(2, mpi.observed(), "independent", tmp_path / "file")
    file = only_file(report)
    writes = file["write"]
    assert file["moments"]["open"] <= writes["moments"]["first"] <= writes["system_moments"]["first"]
    assert writes["system_moments"]["last"] <= writes["moments"]["last"] <= file["moments"]["close"]
    assert writes["common_sizes"] == writes["asked_common_sizes"] == [[1000, 8]]
    assert file["sync_calls"] == 2, "one of each rank"
    assert writes["consecutive"] == 0 and writes["gaps"] == 6, "the blocks of two ranks take turns"
    assert (file["not_aligned"], file["alignment_bytes"]) == (7, 4096), "one write and both reads begin at 0"
    fastest, slowest = writes["rank_seconds"]["fastest"], writes["rank_seconds"]["slowest"]
    assert {fastest["rank"], slowest["rank"]} <= {0, 1}
    assert fastest["seconds"] <= slowest["seconds"] == file["seconds"]["slowest"]["write"]["calls"]
    assert fastest["bytes"] == slowest["bytes"] == 4000


DRIVER = r"""
#include "record/io_heatmap.h"
#include "record/size_histogram.h"
#include <stdio.h>
int main(void) {
  static struct heat heat, other;
  heat_note(&heat, WRITING, 0.05, 0.35, 3000);  /* a sixth, a third, a third, a sixth */
  heat_note(&heat, WRITING, 12.75, 12.75, 7);
  for (int bin = 0; bin < HEAT_BINS; bin++)
    if (heat.bytes[WRITING][bin] > 0)
      printf("%d:%lld ", bin, (long long)heat.bytes[WRITING][bin]);
  heat_note(&other, WRITING, 30, 30, 1);        /* beyond 25.6 s */
  heat_add(&heat, &other);
  printf("| %d %g ", heat.doublings, heat_bin_s(heat.doublings));
  for (int bin = 0; bin < HEAT_BINS; bin++)
    if (heat.bytes[WRITING][bin] > 0)
      printf("%d:%lld ", bin, (long long)heat.bytes[WRITING][bin]);
  heat_restart(&heat);
  printf("| %d %lld ", heat.doublings, (long long)heat.bytes[WRITING][0]);
  struct size_count table[SIZES_MAX] = {{0}}, commonest[SIZES_REPORTED_MAX];
  for (int bytes = 1; bytes <= 40; bytes++)     /* eight find no room */
    for (int call = 0; call < (bytes <= 6 ? bytes : 1); call++)
      sizes_note(table, SIZES_MAX, bytes, 1);
  int count = sizes_commonest(table, SIZES_MAX, commonest);
  printf("| %d", count);
  for (int i = 0; i < count; i++)
    printf(" %lld:%lld", (long long)commonest[i].bytes, (long long)commonest[i].calls);
  return 0;
}
"""


def test_bins_double_and_sizes_overflow(tmp_path):
    """The arithmetic alone: a run of 30 s, and more sizes than the table has room for."""
    (tmp_path / "driver.c").write_text(DRIVER)
    mpi = PROJECT / "mpi"
    words = [
        "gcc",
        "-O1",
        f"-I{mpi}",
        tmp_path / "driver.c",
        mpi / "record" / "io_heatmap.c",
        mpi / "record" / "size_histogram.c",
        "-lm",
        "-o",
        tmp_path / "driver",
    ]
    subprocess.run(words, check=True)
    out = subprocess.run([tmp_path / "driver"], capture_output=True, text=True, check=True).stdout
    first, second, third, fourth = re.split(r" ?\| ", out)
    assert first == "0:500 1:1000 2:1000 3:500 127:7"
    assert second == "2 0.4 0:3000 31:7 75:1"
    assert third == "0 3008"
    assert fourth == "4 6:6 5:5 4:4 3:3"


@pytest.mark.soak
@pytest.mark.parametrize("ranks, per_row, rows", [(256, 1, 256), (300, 2, 150), (3000, 12, 250)])
def test_heat_map_groups_rows_of_many_ranks(mpich, tmp_path, ranks, per_row, rows):
    """The joining alone, of more ranks than this machine can run: rank n writes n + 1 bytes."""
    left_out = {
        "rank_merge.c",
        "exit.c",
        "hook_slots.c",
        "preload_switch.c",
        "mpi_lifecycle.c",
    }  # the first is included, the others start the library
    found = sorted((PROJECT / "mpi").glob("*/*.c"))
    sources = [path for path in found if path.name not in left_out and path.parent.name != "collect"]
    unused = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
    program = mpich.compiled(
        "merged",
        "-std=c11",
        f"-I{PROJECT / 'mpi'}",
        f"-I{PROJECT / 'mpi' / 'include'}",
        *unused,
        PROGRAMS / "merged.c",
        *sources,
    )
    out = subprocess.run([program, tmp_path / "f", str(ranks)], capture_output=True, text=True, check=True).stdout
    report = json.loads(out)
    [heat] = report["heat"]
    assert (heat["ranks_per_row"], heat["rows"]) == (per_row, rows)
    assert row_sums(heat, "write") == {
        row: sum(range(row * per_row + 1, min((row + 1) * per_row, ranks) + 1)) for row in range(rows)
    }
    [file] = report["files"]
    assert (file["ranks"], file["rank"], file["write"]["system_bytes"]) == (ranks, None, ranks * (ranks + 1) // 2)
    assert len(file["write"]["writers"]) == 256
