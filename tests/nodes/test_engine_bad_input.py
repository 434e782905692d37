"""Jobs of several nodes that cannot start: the error names what, where and what to do, and nothing is left."""

import json
import shutil

import pytest

from support.node_jobs import STRIPED, node_job
from support.nodes import BUILD, STORE, nodes


@pytest.fixture(scope="module")
def two_nodes(build):
    with nodes(2, build, 1 << 30) as bed:
        yield bed


@pytest.fixture
def bed(two_nodes):
    yield two_nodes
    two_nodes.wait_until_clean(10)


@pytest.fixture
def refused(bed, request):
    """Runs a job that is refused; the messages."""

    def refuse(*options, names="n1,n2", script="", user="ada", **environment):
        name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
        job = node_job(bed, f"{STRIPED}\n{script}\ntouch started", *options, user=user, name=name)
        words = [names if word == ",".join(bed.names) else word for word in job.words]
        done = bed.run("n1", words, user, check=False, directory=job.folder, **environment)
        assert done.returncode == 125 or done.returncode == 2, (done.returncode, done.stderr)
        assert not job.path("started").exists()
        assert job.left() == []
        return done.stderr

    return refuse


def test_node_that_cannot_be_reached(refused):
    said = refused(names="n1,n9")
    assert "n9" in said and "hint:" in said, said


@pytest.mark.parametrize("names", ["n1,n2,n2", "n1,n1,n2", "n1,n2,{n2}"])
def test_same_node_twice(bed, refused, names):
    said = refused(names=names.format(n2=bed.address("n2")))
    assert "n2" in said or "n1" in said
    assert "twice" in said or "same" in said, said


def test_this_machine_is_none_of_the_nodes(refused):
    said = refused(names="n2")
    assert "this machine, n1, is none of the nodes n2" in said and "hint:" in said


def test_empty_hostfile(bed):
    (bed.shared / "hosts").write_text("# none\n")
    job = node_job(bed, STRIPED, name="hostfile")
    words = ["forebay", "run", "--hostfile", bed.shared / "hosts", job.folder / "job.sh"]
    done = bed.run("n1", words, "ada", check=False)
    assert done.returncode != 0 and f"{bed.shared / 'hosts'} names no node" in done.stderr


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--engine", "nonsense"], ["nonsense", "ceph"]),
        (["--coherence", "loose"], ["strict or close_to_open"]),
        (["--redundancy", "3"], ["redundancy", "1 or 2"]),
        (["--node-dir", "/no/such"], ["/no/such"]),
        (["--node-dir", "/proc"], ["/proc"]),
        (["--store", "/no/such"], ["/no/such", "n"]),
        (["--launcher", "false {node}"], ["n2"]),
    ],
    ids=lambda value: " ".join(value) if value and value[0].startswith("--") else None,
)
def test_wrong_option_is_named(refused, options, parts):
    said = refused(*options)
    assert "error:" in said and all(part in said for part in parts), said


def test_directory_that_the_user_may_not_write(bed, refused):
    assert "permission denied" in refused("--node-dir", "/opt").lower()


def test_node_without_a_program_of_the_engine(bed, refused):
    program = shutil.which("ceph-mon")
    bed.run("n2", ["mount", "--bind", "/dev/null", program])
    try:
        said = refused()
    finally:
        bed.run("n2", ["umount", program])
    assert "n2" in said and "ceph-mon" in said and "install the package" in said, said


def test_node_with_a_full_store(bed, refused):
    bed.run("n2", ["dd", "if=/dev/zero", f"of={STORE}/full", "bs=1M", "status=none"], check=False)
    try:
        said = refused("--strict-capacity", "--store", STORE)
    finally:
        bed.run("n2", ["rm", f"{STORE}/full"])
    assert "n2" in said or str(STORE) in said, said


def test_node_with_another_version(bed, refused):
    """The node answers as an agent of another version does."""
    other = bed.shared / "other"
    attached = {"attached": {"forebay": "9.8.7", "pid": 1, "is_claimed": False}}
    answer = json.dumps({"version": 1, "number": 1, "message": attached})
    other.write_text(f"#!/bin/sh\nread request\necho '{answer}'\nexec cat > /dev/null\n")
    other.chmod(0o755)
    said = refused("--launcher", f"sh -c 'exec ssh {{node}} {other}' --")
    assert "n2 has Forebay 9.8.7" in said and "install the same version" in said, said


def test_node_without_fuse(bed, refused):
    bed.run("n2", ["mount", "--bind", "/dev/null", "/dev/fuse"])
    try:
        said = refused()
    finally:
        bed.run("n2", ["umount", "/dev/fuse"])
    assert "n2" in said and "fuse" in said, said


def test_build_is_the_one_under_test(bed):
    assert bed.run("n2", ["sh", "-c", "command -v forebay"]).stdout.strip() == str(BUILD / "bin" / "forebay")
