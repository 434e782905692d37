"""Staging of a job on several nodes: the other nodes help to copy, and what arrives is the same."""

import json
import os
import pathlib

import pytest

from support.nodes import PYTHON, nodes
from support.waiting import wait_until
from support.strace import few

FILES = 400
DIRECTORIES = 8
LARGE_BYTES = 160 << 20  # three pieces

#: A job whose input goes in and comes out again.
SCRIPT = """#!/bin/bash
#DW jobdw type=scratch access_mode=striped capacity=600MiB
#DW stage_in type=directory source={source} destination=$DW_JOB_STRIPED/in
#DW stage_out type=directory source=$DW_JOB_STRIPED/in destination={target}
{command}
"""


@pytest.fixture
def bed(build):
    with nodes(2, build, store_bytes=1 << 30) as bed:
        yield bed


def make_tree(top: pathlib.Path, large_bytes: int = LARGE_BYTES) -> None:
    """Small files in directories, a large one with a hole, links, modes and times."""
    for number in range(DIRECTORIES):
        (top / f"d{number}").mkdir(parents=True)
    for number in range(FILES):
        path = top / f"d{number % DIRECTORIES}" / f"f{number}"
        path.write_bytes(os.urandom(100 + 10 * number))
        os.utime(path, ns=(10**18 + number, 10**18 + number))
        path.chmod(0o640 if number % 2 else 0o755)
    (top / "link").symlink_to("d0/f0")
    os.link(top / "d1" / "f1", top / "hard")
    with (top / "large").open("wb") as large:
        large.write(os.urandom(1 << 20) * (large_bytes >> 21))
        large.truncate(large_bytes)
    for path in [top, *top.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)


def content(top: pathlib.Path) -> dict:
    """What must be the same at the other end."""
    found = {}
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            found[str(path.relative_to(top))] = os.readlink(path)
        elif path.is_file():
            attributes = (oct(status.st_mode), status.st_mtime_ns, status.st_nlink)
            found[str(path.relative_to(top))] = (*attributes, hash(path.read_bytes()))
    return found


def start(bed, source, target, command: str = "true", **more):
    job = bed.shared / "job.sh"
    job.write_text(SCRIPT.format(source=source, target=target, command=command))
    return bed.popen("n1", ["forebay", "run", "--json", "--nodes", "n1,n2", job], **more)


def ended(process, expected: int = 0) -> dict:
    out, err = process.communicate(timeout=240)
    assert process.returncode == expected, err
    return json.loads(out)


def test_other_node_copies_a_part_and_everything_arrives(bed):
    make_tree(bed.shared / "in")
    result = ended(start(bed, bed.shared / "in", bed.shared / "out"))
    assert content(bed.shared / "out") == content(bed.shared / "in")
    for staged in (result["stage_in"], result["stage_out"]):
        (share,) = staged["nodes"]
        assert share["node"] == "n2" and share["files"] > 0 and share["bytes"] > 0, staged
        assert staged["missing_files"] == 0 and not staged["failures"]


@pytest.mark.soak
def test_destination_of_one_node_is_filled_by_that_node_alone(bed):
    make_tree(bed.shared / "in", large_bytes=100 << 20)
    # Both nodes have a directory of this name, each its own.
    for node in bed.names:
        bed.run(node, ["mkdir", "-p", "/tmp/results"])
    command = f"cp -r {bed.shared}/in /tmp/here"
    result = ended(start(bed, bed.shared / "in", "/tmp/results/out", command))
    assert result["stage_out"]["nodes"] == []
    assert content(bed.path_of("n1", "/tmp/results/out")) == content(bed.shared / "in")
    assert bed.run("n2", ["ls", "-A", "/tmp/results"]).stdout == ""
    notes = [text for text, _ in result["stage_out"]["notes"]]
    assert any(text.startswith("n2 does not see these files") for text in notes), notes
    bed.run("n1", ["rm", "-r", "/tmp/results", "/tmp/here"])


@pytest.mark.soak
def test_source_of_one_node_is_not_taken_from_another(bed):
    # The name leads to other data on the other node.
    for node, text in (("n1", "right"), ("n2", "wrong")):
        bed.run(node, ["mkdir", "-p", "/tmp/in"])
        bed.run(node, [PYTHON, "-c", f"for i in range(200): open(f'/tmp/in/f{{i}}', 'w').write('{text}')"])
    ended(start(bed, "/tmp/in", bed.shared / "out"))
    texts = {path.read_text() for path in (bed.shared / "out").iterdir()}
    assert texts == {"right"}
    for node in bed.names:
        bed.run(node, ["rm", "-r", "/tmp/in"])


@pytest.mark.parametrize("part", few("__node", "ssh"))
def test_staging_completes_when_the_agent_of_the_other_node_dies(bed, part):
    make_tree(bed.shared / "in")
    process = start(bed, bed.shared / "in", bed.shared / "out")
    mounted = lambda: "/mount fuse.forebay-mount" in bed.run("n1", ["cat", "/proc/self/mounts"]).stdout  # noqa: E731
    wait_until(mounted, what="the mount")
    assert bed.kill("n2" if part == "__node" else "n1", part)
    result = ended(process)
    assert content(bed.shared / "out") == content(bed.shared / "in")
    assert result["stage_in"]["missing_files"] == 0 and result["stage_out"]["missing_files"] == 0
    assert not list((bed.shared / "out").rglob(".forebay*"))
