"""Project quotas of pools. The kernel here may have none, so a user-mode Linux with the files of this machine runs them."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support.slurm_cluster import NOBODY, missing
from support.strace import few

HERE = pathlib.Path(__file__).parents[1] / "support"
MIB = 1 << 20
#: What Forebay adds to a capacity of 64 MiB.
LIMIT = 64 * MIB + 16 * MIB + MIB
SITE = """slurm_user = "nobody"
state = "/mnt/state"
munge_socket = "/run/munge/socket"
stage_out_retry = "1s"
node_wait = "20s"
[[pool]]
name = "disk"
kind = "{kind}"
path = "{path}"
granularity = "16MiB"
quantity = 8
quota = "project"
{nodes} = ["n1"]
"""
STEPS = """
install -d -o {user} -m 700 /mnt/state
install -d -o 1 -g 1 /mnt/results
as_user() {{ setpriv --reuid={user} --regid={user} --clear-groups "$@"; }}
call() {{ as_user dw_wlm_cli --function "$1" --token "$2" --job "$TOP/script$2" "${{@:3}}" && echo "$1 $2: ok"; }}
limits() {{ python3 "$TOP/limits.py" "$1"; }}
for id in 1 2; do
    call setup $id --caller SLURM --user 1 --groupid 1 --capacity disk:64MiB
    call data_in $id
    call pre_run $id --nodehostnamefile "$TOP/nodes"
done
first=$(echo /mnt/disk/pool/1.*) second=$(echo /mnt/disk/pool/2.*)
limits "${{first##*.}}"
space="$first/{namespace}"
setpriv --reuid=1 --regid=1 --clear-groups bash -c "head -c 200M /dev/zero >$space/big; echo full \\$?; stat -c 'has %s' $space/big"
setpriv --reuid=1 --regid=1 --clear-groups bash -c "head -c 50M /dev/zero >$second/{namespace}/other; echo other \\$?"
for id in 1 2; do
    call post_run $id
    call data_out $id
    call teardown $id
done
stat -c 'arrived %s' /mnt/results/{result}
ls /mnt/disk/pool | sed 's/^/left /'
for one in "$first" "$second"; do limits "${{one##*.}}"; done
"""
LIMITS = r"""
import ctypes, os, struct, sys
data = ctypes.create_string_buffer(72)
number = os.open("/mnt/disk", os.O_RDONLY)
done = ctypes.CDLL(None, use_errno=True).syscall(443, number, (0x800007 << 8) | 2, int(sys.argv[1]), data)
hard, _, used = struct.unpack_from("QQQ", data) if done == 0 else (0, 0, 0)
print("limit", hard * 1024, "used", used)
"""


def machine():
    """The program and the modules of user-mode Linux."""
    program = os.environ.get("FOREBAY_TEST_UML") or shutil.which("linux.uml")
    if not program or missing():
        pytest.skip(missing() or "not installed: user-mode-linux")
    program = pathlib.Path(program)
    modules = next(iter((program.parents[1] / "lib/uml/modules").glob("*/kernel/fs/quota")), "/none")
    return program, modules


@pytest.fixture
def top():
    made = pathlib.Path(tempfile.mkdtemp(prefix="forebay-quota-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def made_disk(top, kind):
    if not shutil.which(f"mkfs.{kind}"):
        pytest.skip(f"not installed: mkfs.{kind}")
    disk = top / "disk"
    with disk.open("wb") as file:
        file.truncate(512 * MIB)
    options = {"xfs": ["-f"], "ext4": ["-F", "-O", "quota,project", "-E", "quotatype=prjquota"]}[kind]
    subprocess.run([f"mkfs.{kind}", "-q", *options, disk], check=True, capture_output=True)
    return disk


@pytest.mark.parametrize(
    "kind, of_pool", few(("xfs", "onnode"), ("ext4", "directory"), ("xfs", "directory"), ("ext4", "onnode"))
)
def test_quota_stops_a_job_at_its_capacity_and_ends_with_it(build, top, kind, of_pool):
    program, modules = machine()
    is_on_node = of_pool == "onnode"
    namespace = "private" if is_on_node else "striped"
    where = {"kind": of_pool, "path": "/mnt/disk/pool", "nodes": "nodes" if is_on_node else "staging_nodes"}
    (top / "site.toml").write_text(SITE.format(top=top, **where))
    header = f"#!/bin/bash\n#DW jobdw type=scratch access_mode={namespace} capacity=64MiB\n"
    stage_out = f"#DW stage_out type=file source=$DW_JOB_{namespace.upper()}/big destination=/mnt/results/big\n"
    (top / "script1").write_text(header + stage_out)
    (top / "script2").write_text(header)
    (top / "nodes").write_text("n1\n")
    (top / "limits.py").write_text(LIMITS)
    (top / "steps").write_text(STEPS.format(user=NOBODY, namespace=namespace, result="big/n1" if is_on_node else "big"))
    disk = made_disk(top, kind)
    words = ["mem=512M", "root=/dev/root", "rootfstype=hostfs", "hostfs=/", "rw", "con=null", "con0=null,fd:1"]
    variables = [f"TOP={top}", f"BUILD={build.resolve()}", f"KIND={kind}", f"MODULES={modules}"]
    started = [program, *words, f"init={HERE}/quota_machine.sh", f"ubdb={disk}", *variables]
    booted = subprocess.run(started, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500)
    said = (top / "said").read_text() if (top / "said").exists() else booted.stdout
    assert "the end\n" in said, said + booted.stdout
    lines = said.splitlines()
    assert "pool disk: a project quota limits the size of an allocation" in lines, said
    limits = [line.split()[1::2] for line in lines if line.startswith("limit ")]
    assert limits and int(limits[0][0]) == LIMIT, said
    (full,) = [line for line in lines if line.startswith("full ")]
    assert full == "full 1" and ("No space left" in said or "Disk quota exceeded" in said), said
    (has,) = [int(line.split()[1]) for line in lines if line.startswith("has ")]
    assert 64 * MIB <= has <= LIMIT, said
    assert "other 0" in lines, "an allocation stopped another one: " + said
    # An allocation that is full is staged out all the same.
    assert "data_out 1: ok" in lines and f"arrived {has}" in lines, said
    assert "teardown 1: ok" in lines and not [line for line in lines if line.startswith("left ")], said
    assert limits[1:] == [["0", "0"]] * 2, said


def test_daemon_does_not_start_where_there_are_no_quotas(build, top):
    if missing():
        pytest.skip(missing())
    pool = top / "pool"
    pool.mkdir()
    (top / "site.toml").write_text(SITE.format(top=top, kind="onnode", path=pool, nodes="nodes"))
    words = ["forebay-noded", "--listen", "127.0.0.1:0", "--name", "n1"]
    environment = {"PATH": os.defpath, "FOREBAY_SITE": str(top / "site.toml")}
    done = subprocess.run(words, executable=build / "bin/forebay", env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done
    wanted = f'the pool disk has quota = "project", but {pool} enforces no project quotas; mount XFS with -o prjquota'
    assert wanted in done.stderr and done.stderr.rstrip().endswith("; or drop quota"), done
