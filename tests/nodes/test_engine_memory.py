"""Memory of the daemons of a job that makes and removes names for hours."""

import pathlib
import re

import pytest

from support.engines import ENGINES, namespace_of
from support.nodes import PYTHON, ended, nodes
from support.strace import EVERY_POINT

FILES = 4000  # of one step
CYCLE = """
import os, sys
directory, count = sys.argv[1] + "/cycle", int(sys.argv[2])
os.mkdir(directory)
for number in range(count):
    with open(f"{directory}/{number}", "w") as file: file.write("data")
for number in range(count): os.unlink(f"{directory}/{number}")
os.rmdir(directory)
"""


def daemons_kib(bed) -> dict[str, int]:
    """Resident memory of the storage daemon of each node."""
    found = {}
    for node in bed.names:
        (pid,) = [pid for pid, words in bed.processes(node) if words[0].endswith("ceph-osd")]
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        found[node] = int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1])
    return found


if EVERY_POINT:  # the daemons keep what they know of the first 20,000 operations

    @pytest.mark.timeout(1200)
    def test_memory_of_storage_daemons_does_not_follow_the_number_of_operations(build):
        with nodes(2, build) as bed, namespace_of(bed, ENGINES["ceph"]) as namespace:
            sizes_kib = [daemons_kib(bed)]
            for _ in range(8):
                ended(namespace.popen("n1", [PYTHON, "-c", CYCLE, namespace.directory, FILES]), seconds=300)
                sizes_kib.append(daemons_kib(bed))
        for node in bed.names:
            grown = [after[node] - before[node] for before, after in zip(sizes_kib, sizes_kib[1:], strict=False)]
            # Without limits the steps grow by the same.
            assert sum(grown[-2:]) < sum(grown[:2]) / 2, (node, grown)
