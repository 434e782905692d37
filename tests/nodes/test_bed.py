"""The test bed itself: what a node has of its own and in common, ssh, links, MPI ranks, and that nothing stays."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from support.bed_processes import alive, identity, mounts_of, state_of
from support.nodes import PYTHON, STORE, USERS, ended, nodes
from support.strace import few
from support.waiting import wait_until

LOOK_UP = "import socket, sys; print(*[socket.gethostbyname(name) for name in sys.argv[1:]])"
ANYONE = [None, "ada"]


@pytest.fixture(scope="module", params=[1, 2, 4])
def bed(build, request):
    with nodes(request.param, build) as bed:
        yield bed


@pytest.fixture(scope="module")
def two(build):
    with nodes(2, build) as bed:
        yield bed


@pytest.fixture
def own(build):
    """Of one test, which may break it."""
    with nodes(2, build) as bed:
        yield bed


@pytest.mark.parametrize("user", few(*ANYONE))
def test_ssh_leads_from_every_node_to_every_node(bed, user):
    runs = {
        (here, there): bed.popen(here, ["ssh", there, "hostname; id -un; command -v forebay"], user)
        for here in bed.names
        for there in bed.names
    }
    for (_, there), run in runs.items():
        assert ended(run).stdout.split() == [there, user or "root", "/mnt/build/bin/forebay"]


def test_the_names_of_all_nodes_resolve_on_every_node(bed):
    addresses = [bed.address(name) for name in bed.names]
    for name in bed.names:
        assert bed.run(name, [PYTHON, "-c", LOOK_UP, *bed.names], user="ada").stdout.split() == addresses
        assert bed.run(name, ["hostname"]).stdout == f"{name}\n"


def test_a_user_without_the_key_is_refused(two):
    done = two.run("n1", ["ssh", "ada@n2", "true"], user="bob", check=False)
    assert done.returncode == 255 and "Permission denied" in done.stderr


@pytest.mark.parametrize("directory", ["/tmp", "/run", "/dev/shm", str(STORE)])
def test_a_node_has_directories_of_its_own(two, directory):
    two.run("n1", ["touch", f"{directory}/only-here"])
    assert two.path_of("n1", f"{directory}/only-here").exists()
    assert not two.path_of("n2", f"{directory}/only-here").exists()
    assert not os.path.exists(f"{directory}/only-here")
    two.run("n1", ["rm", f"{directory}/only-here"])


@pytest.mark.parametrize("user", ANYONE)
def test_the_shared_directory_and_the_homes_are_the_same_on_all_nodes(two, user):
    name = f"of-{user}"
    two.run("n1", ["sh", "-c", f"echo text >{name}; touch ~/{name}"], user=user)
    assert two.run("n2", ["sh", "-c", f"cat {name}; ls ~"], user=user).stdout.split() == ["text", name]
    assert (two.shared / name).stat().st_uid == USERS.get(user, 0)


def test_a_store_has_the_size_that_was_asked_for(build):
    with nodes(1, build, store_bytes=1 << 20) as bed:
        done = bed.run("n1", ["dd", "if=/dev/zero", f"of={STORE}/file", "bs=64K"], check=False)
        assert "No space left on device" in done.stderr
        assert bed.path_of("n1", STORE / "file").stat().st_size == 1 << 20


def test_an_ordinary_user_mounts_fuse_on_a_node(two):
    """Root itself may not see what is in there; commands and ranks of the user run in it all the same."""
    view = pathlib.Path("/tmp/view")
    mount = f"mkdir {view} /tmp/real; echo text >/tmp/real/file; bindfs --no-allow-other /tmp/real {view}"
    for name in two.names:
        two.run(name, ["sh", "-ec", mount], user="ada")
    assert two.run("n1", ["ls", view], check=False).returncode != 0
    assert two.run("n2", ["cat", "file"], user="ada", directory=view).stdout == "text\n"
    assert two.mpirun(2, ["cat", "file"], user="ada", directory=view).stdout == "text\n" * 2
    for name in two.names:
        two.run(name, ["sh", "-ec", f"fusermount -u {view}; rmdir {view}; rm -r /tmp/real"], user="ada")


def test_a_command_runs_to_its_end_or_fails(two):
    assert two.run("n1", ["cat"], input="text").stdout == "text"
    assert two.run("n1", ["sh", "-c", "exit 3"], check=False).returncode == 3
    with pytest.raises(AssertionError):
        two.run("n1", ["false"])
    with pytest.raises(subprocess.TimeoutExpired):
        two.run("n1", ["sleep", "1000"], seconds=0.2)
    wait_until(lambda: two.processes("n1") == [])  # that of another test may be about to end


def test_signals_reach_the_command(two):
    run = two.popen("n1", ["sh", "-c", "trap 'echo told; exit 7' TERM; echo up; while :; do sleep 0.01; done"])
    assert run.stdout.readline() == "up\n"
    run.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(run.command_pid) == state_of(run.pid) == "T")
    run.send_signal(signal.SIGCONT)
    run.terminate()
    assert ended(run, check=False).stdout == "told\n" and run.returncode == 7
    run = two.popen("n1", ["sleep", "1000"])
    wait_until(lambda: is_there(two, "n1", "sleep 1000"))
    assert len(two.kill("n1", "sleep 1000")) == 1
    assert run.wait(180) == -signal.SIGKILL


def is_there(bed, node, part):
    return any(part in " ".join(words) for _, words in bed.processes(node))


def test_a_link_goes_down_and_up(own):
    reach = ["ssh", "-o", "ConnectTimeout=1", "n2", "hostname"]
    own.link("n2", "down")
    assert own.run("n1", reach, check=False).returncode == 255
    assert own.run("n2", ["ssh", "n2", "hostname"]).stdout == "n2\n"
    own.link("n2", "up")
    # The nodes forget only after a while that they did not reach each other.
    wait_until(lambda: own.run("n1", reach, check=False).stdout == "n2\n")


def test_a_node_that_crashes_has_no_process_and_no_network(own):
    run = own.popen("n2", ["sleep", "1000"])
    own.run("n2", ["touch", STORE / "kept"])
    wait_until(lambda: is_there(own, "n2", "sleep 1000"))
    own.crash("n2")
    assert run.wait(180) == -signal.SIGKILL and own.processes("n2") == []
    assert own.run("n1", ["ssh", "-o", "ConnectTimeout=1", "n2", "true"], check=False).returncode == 255
    assert own.run("n1", ["ssh", "n1", "hostname"]).stdout == "n1\n"
    assert own.path_of("n2", STORE / "kept").exists()


@pytest.mark.parametrize("user", few(*ANYONE))
@pytest.mark.parametrize("shift", [0, 1])
def test_rank_r_has_the_mounts_of_its_node(bed, user, shift):
    for name in bed.names:
        bed.run(name, ["sh", "-c", f"hostname >{STORE}/name"])
    told = "echo $OMPI_COMM_WORLD_RANK $FOREBAY_BED_NODE $(cat /mnt/nvme/name) $(id -un)"
    done = bed.mpirun(5, ["sh", "-c", told], user, shift=shift)
    numbers = [(rank + shift) % len(bed.names) + 1 for rank in range(5)]
    expected = [f"{rank} {number} n{number} {user or 'root'}" for rank, number in enumerate(numbers)]
    assert sorted(done.stdout.splitlines()) == expected


def test_a_command_with_the_mounts_only_has_the_heads_network(two):
    told = f"hostname; ls {STORE}"
    two.run("n2", ["touch", STORE / "of-n2"])
    assert ended(two.popen("n2", ["sh", "-c", told], mounts_only=True)).stdout.split() == ["head", "of-n2"]


def test_beds_side_by_side_do_not_reach_each_other(two, own):
    assert two.subnet != own.subnet and two.shared != own.shared
    done = two.run("n1", ["ssh", "-o", "ConnectTimeout=1", own.address("n1"), "true"], check=False)
    assert done.returncode == 255


# Nothing stays

TWO_MOUNTS = "mkdir /tmp/real /mnt/lower /mnt/upper; bindfs /tmp/real /mnt/lower; bindfs /mnt/lower /mnt/upper"
DAEMON = "setsid sleep 1000 >&- 2>&- <&- &"


def files_of_the_machine():
    roots = ["/etc/ssh", "/root/.ssh", "/etc/hosts", "/etc/passwd", "/etc/group", "/etc/shadow", "/run/netns", "/mnt"]
    found = [path for root in roots for path in [pathlib.Path(root), *pathlib.Path(root).glob("**/*")] if path.exists()]
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


def test_teardown_ends_daemons_and_hung_mounts_after_a_failed_test(build):
    before = files_of_the_machine()
    with pytest.raises(ZeroDivisionError):
        with nodes(2, build) as bed:
            for name in bed.names:
                bed.run(name, ["sh", "-c", f"{DAEMON} {TWO_MOUNTS}"])
                assert bed.kill(name, "bindfs /tmp/real", signal.SIGSTOP)
            reader = bed.popen("n1", ["ls", "/mnt/upper/name"])
            # Once the upper daemon has taken its request, the reader cannot be killed.
            (upper,) = [pid for pid, words in bed.processes("n1") if words[:2] == ["bindfs", "/mnt/lower"]]
            wait_until(lambda: "request_wait_answer" in pathlib.Path(f"/proc/{upper}/stack").read_text())
            reader.kill()
            wait_until(lambda: bed.stuck() and state_of(reader.command_pid) == "D")
            inside = bed.all_processes()
            assert len(alive(inside)) > 10
            1 / 0
    assert alive(inside) == [] and not bed.top.exists()
    assert not [words for words in mounts_of(os.getpid()) if str(bed.top) in " ".join(words)]
    assert reader.wait(180) != 0
    assert files_of_the_machine() == before


def test_what_a_test_leaves_on_a_node_is_named(build):
    with pytest.raises(AssertionError, match="n2: process .* sleep 1000"):
        with nodes(2, build, clean_s=0.1) as bed:
            bed.run("n2", ["sh", "-c", DAEMON])
    with pytest.raises(AssertionError, match="n1: mount /mnt/here"):
        with nodes(1, build, clean_s=0.1) as bed:
            bed.run("n1", ["sh", "-c", "mkdir /mnt/here; mount -t tmpfs none /mnt/here"])


KILLED = """
import pathlib, sys
from support.nodes import nodes
with nodes(2, pathlib.Path(sys.argv[1])) as bed:
    bed.run("n1", ["sh", "-c", "setsid sleep 1000 >&- 2>&- <&- &"])
    bed.run("n2", ["sh", "-c", "setsid sleep 1000 >&- 2>&- <&- &"])
    print(bed.top, *[pid for pid, _ in bed.all_processes()], flush=True)
    sys.stdin.read()
"""


def test_a_killed_test_leaves_no_process(build):
    tests = pathlib.Path(__file__).resolve().parents[1]
    words = [sys.executable, "-c", KILLED, str(build)]
    pipe = subprocess.PIPE
    run = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=os.environ | {"PYTHONPATH": str(tests)})
    top, *pids = run.stdout.readline().split()
    inside = {identity(int(pid)) for pid in pids}
    assert len(alive(inside)) > 6
    run.kill()
    run.communicate()
    wait_until(lambda: not alive(inside))
    subprocess.run(["rm", "-r", top], check=True)
