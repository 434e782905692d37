"""Files of 8 TiB with holes, in namespaces with and without the capacity for them. Holes count."""

import json
import shutil

import pytest

from support.node_jobs import STRIPED, node_job, on_disks
from support.nodes import PYTHON, nodes

TIB = 1 << 40
PROGRAM = """
import errno, json, os
TIB = 1 << 40
file = os.open("large", os.O_RDWR | os.O_CREAT)
def result(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
places = [0, 3 * TIB + 5, 8 * TIB - 7, 10 * TIB]
found = {"written": [result(os.pwrite, file, b"1234567", place) for place in places]}
found["size"] = os.fstat(file).st_size
found["cut"] = result(os.ftruncate, file, 8 * TIB)
os.fsync(file)
print(json.dumps(found))
"""
READ = """
import json, os
TIB = 1 << 40
file = os.open("large", os.O_RDONLY)
at = lambda place: os.pread(file, 9, place).hex()
print(json.dumps([os.fstat(file).st_size, at(3 * TIB + 4), at(4 * TIB), at(8 * TIB - 8), at(8 * TIB)]))
"""


@pytest.fixture
def bed(build):
    with nodes(2, build) as bed:
        yield bed


def of_both_nodes(bed, capacity):
    """What the program found on the first node, and what the second one reads."""
    for name, text in (("write.py", PROGRAM), ("read.py", READ)):
        (bed.shared / name).write_text(text)
    script = f"""{STRIPED.replace("64MiB", capacity)}
cd $DW_JOB_STRIPED; {PYTHON} {bed.shared}/write.py; ssh n2 "cd $DW_JOB_STRIPED && {PYTHON} {bed.shared}/read.py" """
    job = node_job(bed, script, name="large")
    done = job.run()
    assert job.leftovers() == []
    return list(map(json.loads, done.stdout.splitlines()))


def test_file_of_8_tib_with_holes_is_the_same_on_each_node(bed):
    if not shutil.which("mkfs.xfs"):
        pytest.skip("not installed: mkfs.xfs")
    with on_disks(bed, 12 * TIB):
        found, other = of_both_nodes(bed, "9TiB")
    assert found == {"written": [7, 7, 7, "EFBIG"], "size": 8 * TIB, "cut": None}
    data = b"1234567"
    assert other == [8 * TIB, (b"\0" + data + b"\0").hex(), bytes(9).hex(), (b"\0" + data).hex(), ""]


def test_file_larger_than_the_namespace_is_refused_and_nothing_else_harmed(bed):
    found, other = of_both_nodes(bed, "64MiB")
    assert found == {"written": [7, "EFBIG", "EFBIG", "EFBIG"], "size": 7, "cut": "EDQUOT"}
    assert other == [7, "", "", "", ""]
