"""Jobs of several nodes that cannot start: the error names what, where and what to do, and nothing is left."""

import json
import shutil

import pytest

from support.ceph import secret
from support.node_jobs import STRIPED, node_job
from support.nodes import BUILD, STORE, nodes


@pytest.fixture(scope="module")
def two_nodes(build):
    with nodes(2, build, 1 << 30) as bed:
        yield bed


@pytest.fixture
def bed(two_nodes):
    yield two_nodes
    two_nodes.wait_until_clean()


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
        assert job.leftovers() == []
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


def test_node_local_path_of_somebody_else(bed, refused):
    """It is neither used nor removed."""
    theirs = bed.path_of("n2", "/mnt/bb/ada")
    theirs.mkdir(mode=0o777)
    said = refused(script="#BSUB -alloc_flags nvme")
    assert "node n2" in said and "/mnt/bb/ada: File exists" in said and "another job" in said, said
    theirs.rmdir()


def test_node_without_the_directory_of_node_local_paths(bed, refused):
    bed.path_of("n2", "/mnt/bb").rename(bed.path_of("n2", "/mnt/away"))
    said = refused(script="#BSUB -alloc_flags nvme")
    assert "node n2" in said and "/mnt/bb/ada: No such file" in said and "the site must make" in said, said
    bed.path_of("n2", "/mnt/away").rename(bed.path_of("n2", "/mnt/bb"))


def test_spectral_does_not_see_the_node_local_files_of_other_nodes(bed, refused):
    variables = {"PERSIST_DIR": "/mnt/bb/ada", "PFS_DIR": str(bed.shared)}
    said = refused(script="#BSUB -alloc_flags spectral", **variables)
    assert "PERSIST_DIR=/mnt/bb/ada" in said and "on one node" in said, said


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
    assert f"{STORE} on 2 nodes, of which that of node n2 is the smallest, can give 0 B" in said, said


def test_full_store_of_one_node_is_named(bed, refused):
    """Without a least size. The quota of nothing would be no quota."""
    bed.run("n2", ["dd", "if=/dev/zero", f"of={STORE}/full", "bs=1M", "status=none"], check=False)
    try:
        said = refused("--store", STORE)
    finally:
        bed.run("n2", ["rm", f"{STORE}/full"])
    assert f"store {STORE} of node n2 has no space" in said and "--store" in said, said


@pytest.mark.soak
def test_smallest_of_unequal_stores_limits_the_namespace(bed):
    bed.run("n2", ["dd", "if=/dev/zero", f"of={STORE}/other", "bs=1M", "count=824", "status=none"])
    script = f"""{STRIPED.replace("64MiB", "10GiB")}
cd $DW_JOB_STRIPED; df --output=size -B1M . | tail -n 1
LC_ALL=C dd if=/dev/zero of=large bs=1M count=400 2>&1 | head -n 1"""
    job = node_job(bed, script, name="unequal")
    try:
        done = job.run()
    finally:
        bed.run("n2", ["rm", f"{STORE}/other"])
    size, wrote = done.stdout.splitlines()
    # Twice four fifths of at most 200 MiB; two whole stores would give 1.6 GiB.
    assert 100 < int(size) <= 320 and "quota exceeded" in wrote
    assert "warning: node n2 has the smallest store" in done.stderr, done.stderr
    assert job.leftovers() == []


def test_clocks_that_differ_are_a_warning(bed):
    ahead = f"env LD_PRELOAD={BUILD}/tests/jumping_clock.so CLOCK_JUMPS_WHEN=/ CLOCK_JUMPS_BY_S=300"
    job = node_job(bed, f"{STRIPED}\necho ran", "--launcher", f"ssh {{node}} {ahead}", name="clocks")
    done = job.run()
    assert done.stdout == "ran\n"
    assert "warning: the clocks of n1 and n2 differ by " in done.stderr, done.stderr
    assert "times of files differ between nodes" in done.stderr
    assert job.leftovers() == []


def test_nodes_with_different_engine_versions(bed, refused):
    program = shutil.which("ceph-mon")
    other = bed.top / "ceph-mon"
    other.write_text("#!/bin/sh\necho 'ceph version 99.1.2 (0) other (stable)'\n")
    other.chmod(0o755)
    bed.run("n2", ["mount", "--bind", other, program])
    try:
        said = refused()
    finally:
        bed.run("n2", ["umount", program])
    assert "node n1 has Ceph " in said and "node n2 has 99.1.2: install the same" in said, said


@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "what"),
    [
        ("mount -t tmpfs other PATH", "a mount point already"),
        ("touch PATH/precious", "a directory that is not empty"),
        ("rmdir PATH && touch PATH", "no directory"),
    ],
)
def test_mount_of_a_profile_that_is_in_use(bed, refused, make, what):
    """Its stop commands would remove what is there."""
    path, profile = "/mnt/used", bed.shared / "used.toml"
    bed.run("n2", ["sh", "-c", f"mkdir {path} && {make.replace('PATH', path)}"])
    profile.unlink(missing_ok=True)
    remove = f"rm -rf {path}"
    profile.write_text(
        f"engine = 'command'\nmount = '{path}'\n[promise]\ncoherence = 'strict'\n"
        + f"[[start]]\non = 'every'\ncommand = 'mkdir -p {path}'\n[[stop]]\non = 'every'\ncommand = '{remove}'\n"
    )
    before = bed.run("n2", ["ls", "-lAd", path, f"{path}/"], check=False).stdout
    try:
        said = refused("--profile", profile, user=None)
        assert f"{path} is {what}" in said and "n2" in said, said
        assert bed.run("n2", ["ls", "-lAd", path, f"{path}/"], check=False).stdout == before != ""
    finally:
        bed.run("n2", ["umount", path], check=False)
        bed.run("n2", ["rm", "-r", path])


def test_user_with_the_address_but_no_key_is_refused(bed):
    """The configuration is not secret: it has addresses. The keys are."""
    job = node_job(bed, f"{STRIPED}\necho secret >$DW_JOB_STRIPED/a\nhold\ntrue", name="stolen")
    run = job.start()
    try:
        check_that_bob_is_refused(bed, job)
    finally:
        job.release(run)
    assert job.leftovers() == []


def check_that_bob_is_refused(bed, job):
    home = job.mount().parent.parent / "ceph"
    configuration = bed.run("n1", ["cat", home / "ceph.conf"], "ada").stdout
    own = bed.shared / "stolen-by-bob"
    own.mkdir()
    bed.run("n1", ["chown", "bob", own])
    for name in ("client.job", "client.admin"):
        keyring, conf = own.with_suffix(f".{name}.keyring"), own.with_suffix(f".{name}.conf")
        keyring.write_text(f"[{name}]\nkey = {secret()}\n")
        conf.write_text(configuration.replace(f"{home}/keyring", str(keyring)))
        mount = ["timeout", "40", "ceph-fuse", "-f", "-c", conf, "--name", name, own]
        tried = bed.run("n1", mount, "bob", check=False, seconds=60)
        assert tried.returncode not in (0, 124) and "auth_bad_method" in tried.stderr, tried
    assert bed.run("n1", ["cat", home / "keyring"], "bob", check=False).returncode != 0
    assert bed.run("n1", ["ls", job.mount()], "bob", check=False).returncode != 0


def test_node_with_another_version(bed, refused):
    """The node answers as an agent of another version does."""
    other = bed.shared / "other"
    attached = {"attached": {"forebay": "9.8.7", "pid": 1, "is_claimed": False}}
    answer = json.dumps({"version": 4, "number": 1, "message": attached})
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
