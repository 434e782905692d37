"""The installed profiles with programs that record their words. This shows what Forebay runs, and on which node; the real
systems are not here. test_site_cephfs.py runs cephfs-directory on a real CephFS."""

import pathlib
import re
import shutil

import pytest

from support.mpi import PROJECT
from support.nodes import nodes

PROFILES = sorted((PROJECT / "profiles").glob("*.toml"))
# Mounts or unmounts on its own node what the real program would, and for programs that reach all nodes on both.
PROGRAM = """#!/bin/sh
test "$*" != --version || exit 0
echo "$(hostname) $(basename "$0") $*" >> {shared}/calls
on_nodes() {{ for node in n1 n2; do ssh $node "$1" || exit; done; }}
case "$(basename "$0") $*" in
"beeond start "*) echo "$7" > {shared}/mounted; on_nodes "mount -t tmpfs recorded '$7'" ;;
"beeond stop "*) on_nodes "umount '$(cat {shared}/mounted)'" ;;
"lod "*" start") on_nodes "mount -t tmpfs recorded {shared}/lod" ;;
"lod "*" stop") on_nodes "umount {shared}/lod" ;;
"dfuse "*) mount -t tmpfs recorded "$2" ;;
"fusermount3 "*) umount "$2" ;;
esac
"""
NAMES = ("beeond", "lod", "daos", "dfuse", "fusermount3", "lfs", "setfattr")
JOB = "#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity=64MiB\ncd $DW_JOB_STRIPED && pwd -P\n"
# What each program is called with, in this order: DIR is the directory of the job on a node, ID the number of the job.
CALLS = {
    "beeond": [
        "n1 beeond start -n DIR/nodes -d STORE/beeond -c DIR/mount -i DIR/beeond.status",
        "n1 beeond stop -n DIR/nodes -i DIR/beeond.status -L -d -c",
    ],
    "lod": [
        "n1 lod --node=n1,n2 --fsname=forebay --mdtdevs=DISK-mdt --ostdevs=DISK-ost --mountpoint=SHARED/lod initialize",
        "n1 lod --node=n1,n2 --fsname=forebay --mdtdevs=DISK-mdt --ostdevs=DISK-ost --mountpoint=SHARED/lod start",
        "n1 lod --node=n1,n2 --fsname=forebay --mdtdevs=DISK-mdt --ostdevs=DISK-ost --mountpoint=SHARED/lod stop",
    ],
    "daos": [
        "n1 daos container create forebay forebay-ID --type POSIX",
        "n1 dfuse --disable-caching DIR/mount forebay forebay-ID",
        "n2 dfuse --disable-caching DIR/mount forebay forebay-ID",
        "n1 fusermount3 -u DIR/mount",
        "n2 fusermount3 -u DIR/mount",
        "n1 daos container query forebay forebay-ID",
        "n1 daos container destroy forebay forebay-ID --force",
    ],
    "flash-directory": ["n1 lfs setstripe -p flash -S 1048576 -c -1 SHARED/root-ID"],
    "cephfs-directory": [
        "n1 setfattr -n ceph.dir.layout -v stripe_unit=1048576 stripe_count=1 object_size=1048576 SHARED/root-ID",
        "n1 setfattr -n ceph.quota.max_bytes -v 67108864 SHARED/root-ID",
    ],
}
OPTIONS = {"/cephfs/forebay": "{shared}", "/lustre/flash/forebay": "{shared}", "/mnt/forebay-lod": "{shared}/lod"}


@pytest.fixture(scope="module")
def bed(build, tmp_path_factory):
    top = tmp_path_factory.mktemp("build")
    for part in ("lib/forebay", "share/forebay"):
        shutil.copytree(build / part, top / part)
    (top / "bin").mkdir()
    shutil.copy(build / "bin" / "forebay", top / "bin")
    with nodes(2, top) as bed:
        for name in NAMES:
            program = top / "bin" / name
            program.write_text(PROGRAM.format(shared=bed.shared))
            program.chmod(0o755)
        yield bed


def run(bed, file: pathlib.Path):
    """Runs a job with the profile, with paths of its options in the shared directory."""
    text = file.read_text()
    for path, other in OPTIONS.items():
        text = text.replace(path, other.format(shared=bed.shared))
    (bed.shared / "lod").mkdir(exist_ok=True)
    (bed.shared / "calls").unlink(missing_ok=True)
    profile = bed.shared / file.name
    profile.unlink(missing_ok=True)
    profile.write_text(text)
    script = bed.shared / "job.sh"
    script.write_text(JOB)
    words = ["forebay", "run", "--nodes", "n1,n2", "--engine-profile", profile, "--coherence", "close_to_open", script]
    return bed.run("n1", words, check=False)


def plain(bed, lines: list[str]) -> list[str]:
    """The calls with names in place of what differs from run to run."""
    text = "\n".join(lines).replace(f"{bed.shared}", "SHARED").replace("/dev/disk/by-partlabel/forebay", "DISK")
    text = re.sub(r"\S*/forebay-node-\d+-\w+(?=[/\s]|$)", "DIR", text)
    text = re.sub(r"-d \S*/beeond", "-d STORE/beeond", text)
    return re.sub(r"(root|forebay)-\d+", r"\1-ID", text).splitlines()


def test_each_installed_profile_is_tested():
    assert [file.stem for file in PROFILES] == sorted(CALLS)


@pytest.mark.parametrize("file", PROFILES, ids=lambda file: file.stem)
def test_profile_runs_its_programs_on_their_nodes(bed, file):
    done = run(bed, file)
    assert done.returncode == 0 and "node n" not in done.stderr, done.stderr
    calls = plain(bed, (bed.shared / "calls").read_text().splitlines())
    # The nodes do not wait for each other when they stop.
    assert sorted(calls) == sorted(CALLS[file.stem]), calls
    of_first = [call for call in CALLS[file.stem] if call.startswith("n1 ")]
    assert [call for call in calls if call.startswith("n1 ")] == of_first
    bed.wait_until_clean()  # an ssh server ends after its client
    assert not list(bed.shared.glob("root-*"))
