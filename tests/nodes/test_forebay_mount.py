"""What Forebay's own client of CephFS adds: appends of all nodes, shared mappings, locks that can be interrupted,
errors that reach the program, and the client of Ceph where it cannot run."""

import collections
import json
import pathlib
import signal
import time

import pytest

from support.engines import ENGINES, Namespace, namespace_of, of_job
from support.mpi import PROJECT
from support.node_jobs import STRIPED, node_job
from support.nodes import PYTHON, ended, nodes
from support.strace import EVERY_POINT

PROGRAMS = PROJECT / "tests" / "programs" / "nodes"
RECORDS = 10_000 if EVERY_POINT else 150
NAMES = 1_000_000 if EVERY_POINT else 3_000


@pytest.fixture(scope="module")
def four(build):
    with nodes(4, build) as bed, namespace_of(bed, ENGINES["ceph"]) as namespace:
        yield namespace


def python(namespace: Namespace, node: str, code: str, *arguments: object) -> str:
    return namespace.run(node, [PYTHON, "-c", code, *arguments], seconds=3000).stdout


@pytest.mark.timeout(3600 if EVERY_POINT else 300)
def test_appends_of_four_nodes_lose_no_byte(four):
    file = four.directory / "log"
    four.run("n1", ["touch", file])
    words = [PYTHON, PROGRAMS / "appends.py", file]
    writers = [four.popen(node, [*words, node, RECORDS]) for node in four.nodes]
    for writer in writers:
        ended(writer, seconds=3000)
    seen = collections.defaultdict(list)
    for line in four.run("n4", ["cat", file]).stdout.splitlines():
        assert len(line) == 99
        name, number = line.rstrip(".").split()
        seen[name].append(int(number))
    assert seen == {node: list(range(RECORDS)) for node in four.nodes}


MAPPED = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
view, again = mmap.mmap(file, 8192), mmap.mmap(file, 8192)
view[:6] = b"mapped"
assert again[:6] == b"mapped" and os.pread(file, 6, 0) == b"mapped"
os.pwrite(file, b"W", 0)
assert view[:6] == b"Wapped"
view.flush() if sys.argv[2] == "msync" else view.close()
print(os.pread(os.open(sys.argv[1], os.O_RDONLY), 6, 0).decode())
"""


@pytest.mark.parametrize("way", ["msync", "munmap"])
def test_shared_mapping_is_one_with_the_file_and_reaches_other_nodes(four, way):
    file = four.directory / f"map-{way}"
    four.run("n1", ["truncate", "-s", "8192", file])
    assert python(four, "n1", MAPPED, file, way) == "Wapped\n"
    assert four.run("n2", ["head", "-c", "6", file]).stdout == "Wapped"
    # A mapping that is made later shows what another node wrote.
    four.run("n2", ["sh", "-c", f"printf later | dd of={file} conv=notrunc status=none"])
    code = "import mmap, os, sys; print(mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 8192)[:5])"
    assert python(four, "n1", code, file) == "b'later'\n"


DIRECT = """
import mmap, os, sys
cached = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(cached, b"a" * 8192, 0)
assert os.pread(cached, 8192, 0) == b"a" * 8192
block = mmap.mmap(-1, 4096)
block[:] = b"b" * 4096
os.pwritev(os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT), [block], 0)
print(os.pread(cached, 4097, 0) == b"b" * 4096 + b"a")
"""


def test_direct_write_leaves_no_old_bytes_in_the_cache(four):
    assert python(four, "n1", DIRECT, four.directory / "direct") == "True\n"


# The child keeps the first opening until the parent has locked again.
LOCK_AGAIN = """
import fcntl, os, sys
first, second, third = (os.open(sys.argv[1], os.O_RDWR | os.O_CREAT) for _ in range(3))
reads, writes = os.pipe()
fcntl.lockf(first, fcntl.LOCK_EX)
child = os.fork()
if child == 0:
    os.close(writes)
    os.read(reads, 1)
    os._exit(0)
os.close(second)
os.close(first)
fcntl.lockf(third, fcntl.LOCK_EX)
os.close(writes)
os.waitpid(child, 0)
print("locked", flush=True)
sys.stdin.read()
"""
IS_LOCKED = """
import fcntl, sys, time
wanted = open(sys.argv[1], "r+")
end = time.monotonic() + 0.5
while time.monotonic() < end:
    try:
        fcntl.lockf(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sys.exit("it is not locked")
    except BlockingIOError:
        time.sleep(0.01)
"""


def test_lock_outlives_the_end_of_an_opening_that_had_one_before(four):
    file = four.directory / "lock-again"
    holder = four.popen("n1", [PYTHON, "-c", LOCK_AGAIN, file])
    assert holder.stdout.readline() == "locked\n"
    python(four, "n2", IS_LOCKED, file)
    holder.stdin.close()
    assert holder.wait(timeout=60) == 0


HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+")
(fcntl.flock if sys.argv[2] == "flock" else fcntl.lockf)(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
WAIT = """
import fcntl, signal, sys, time
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring)
lock = fcntl.flock if sys.argv[2] == "flock" else fcntl.lockf
wanted = open(sys.argv[1], "r+")
try:
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    lock(wanted, fcntl.LOCK_EX)
    print("got it at once")
except Alarm:
    print("interrupted", flush=True)
lock(wanted, fcntl.LOCK_EX)
print("got it", flush=True)
"""


@pytest.mark.parametrize("kind", ["flock", "fcntl"])
def test_wait_for_a_lock_of_another_node_can_be_interrupted_and_killed(four, kind):
    file = four.directory / f"lock-{kind}"
    four.run("n1", ["touch", file])
    holder = four.popen("n1", [PYTHON, "-c", HOLD, file, kind])
    assert holder.stdout.readline() == "held\n"
    killed, waiter = (four.popen("n2", [PYTHON, "-c", WAIT, file, kind]) for _ in range(2))
    for process in (killed, waiter):
        assert process.stdout.readline() == "interrupted\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    holder.stdin.close()
    assert waiter.stdout.readline() == "got it\n"
    waiter.communicate(timeout=60)
    assert (holder.wait(timeout=60), waiter.returncode) == (0, 0)


#: The process that holds a lock of the file; 0 for one that cannot be named here.
HOLDER = """
import fcntl, struct, sys
wanted = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
with open(sys.argv[1], "r+") as file:
    kind, _, _, _, process = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, wanted))
print(kind == fcntl.F_WRLCK, process)
"""


def test_holder_of_a_lock_is_a_process_of_the_own_node_or_none(four):
    file = four.directory / "lock-holder"
    four.run("n1", ["touch", file])
    held = four.popen("n1", [PYTHON, "-c", "import os; print(os.getpid(), flush=True)\n" + HOLD, file, "fcntl"])
    process = held.stdout.readline().strip()
    assert held.stdout.readline() == "held\n"
    assert python(four, "n1", HOLDER, file) == f"True {process}\n"
    assert python(four, "n2", HOLDER, file) == "True 0\n"
    held.communicate("")


@pytest.mark.parametrize(("time_s", "stored_s"), [(-5, 0), (1 << 31, 1 << 31), (1 << 32, (1 << 32) - 1)])
def test_time_that_a_server_cannot_store_becomes_the_nearest(four, time_s, stored_s):
    file = four.directory / f"time-{time_s}"
    code = "import os, sys; open(sys.argv[1], 'x').close(); os.utime(sys.argv[1], (int(sys.argv[2]),) * 2)"
    python(four, "n1", code, file, time_s)
    for node in ("n1", "n2"):
        assert four.run(node, ["stat", "-c", "%X %Y", file]).stdout == f"{stored_s} {stored_s}\n"


def test_flock_and_fcntl_do_not_exclude_each_other(four):
    """As on Linux. A whole-file lock of the process does not stop its own append, either."""
    code = """
import fcntl, os, sys
one, other = (os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND) for _ in range(2))
fcntl.flock(one, fcntl.LOCK_EX)
fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.write(one, b"appended")
print(os.fstat(other).st_size)
"""
    assert python(four, "n3", code, four.directory / "both") == "8\n"


WALK = """
import os, sys
for _ in range(3):  # the mount asks for less about a name that was a directory before
    size = os.stat(sys.argv[1] + "/file").st_size
print(size)
"""
SHOW = "import os, sys; found = os.stat(sys.argv[1]); print(found.st_mtime_ns, found.st_size, found.st_nlink)"


def test_directory_that_paths_lead_through_is_what_other_nodes_made_of_it(four):
    top = four.make_directory("way")
    directory, moved = top / "d", top / "e"

    def stat_numbers(path):
        return [int(word) for word in python(four, "n1", SHOW, path).split()]

    four.run("n1", ["mkdir", directory])
    four.run("n1", ["sh", "-c", f"echo one > {directory}/file"])
    assert python(four, "n1", WALK, directory) == "4\n"
    before = stat_numbers(directory)
    four.run("n2", ["touch", directory / "other"])
    assert python(four, "n1", WALK, directory) == "4\n"
    after = stat_numbers(directory)
    assert after[0] > before[0] and after[2] >= 1
    # What the kernel has from the way, without asking the mount.
    links, modified_s = four.run("n1", ["stat", "--cached=always", "--format=%h %Y", directory]).stdout.split()
    assert int(links) >= 1 and int(modified_s) > 0
    four.run("n2", ["sh", "-c", f"mv {directory} {moved} && echo 'a file' > {directory}"])
    assert four.run("n1", ["cat", directory]).stdout == "a file\n" and stat_numbers(directory)[1] == 7
    assert python(four, "n1", WALK, moved) == "4\n"
    four.run("n2", ["sh", "-c", f"rm {directory} && mv {moved} {directory}"])
    assert python(four, "n1", WALK, directory) == "4\n"
    four.run("n2", ["chmod", "000", directory])
    denied = "import os, sys; print(os.access(sys.argv[1], os.X_OK), os.path.exists(sys.argv[1] + '/file'))"
    assert python(four, "n1", denied, directory) == "False False\n"
    four.run("n2", ["chmod", "755", directory])
    assert python(four, "n1", denied, directory) == "True True\n"


LIST = """
import os, sys
names = os.listdir(sys.argv[1])
assert len(set(names)) == len(names)
for name in names: os.stat(os.path.join(sys.argv[1], name))
print(len(names))
"""


@pytest.mark.soak
@pytest.mark.timeout(7200 if EVERY_POINT else 150)
def test_large_directory_is_seen_whole_on_another_node(four):
    directory = four.make_directory("large")
    code = "import os, sys\nfor i in range(int(sys.argv[2])): os.mknod(f'{sys.argv[1]}/{sys.argv[3]}-{i}')"
    count = NAMES // len(four.nodes)
    processes = [four.popen(node, [PYTHON, "-c", code, directory, count, node]) for node in four.nodes]
    for process in processes:
        ended(process, seconds=3000)
    assert python(four, "n2", LIST, directory) == f"{NAMES}\n"


WRITE = """
import errno, json, os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print("writing", flush=True)
found = {}
def tried(what, call):
    try: call()
    except OSError as error: found[what] = errno.errorcode[error.errno]
while not found:
    tried("write", lambda: os.write(file, b"x" * (1 << 16)))
    os.lseek(file, 0, os.SEEK_SET)
tried("fsync", lambda: os.fsync(file))
tried("close", lambda: os.close(file))
print(json.dumps(found), flush=True)
"""
LOST = {"ENOTCONN", "ECONNABORTED"}


def test_death_of_the_mount_is_an_error_of_write_fsync_and_close(build):
    with nodes(2, build, clean_s=20) as bed, of_job(bed, "ada", "--engine", "ceph") as directory:
        writer = bed.popen("n2", [PYTHON, "-c", WRITE, directory / "file"], "ada")
        assert writer.stdout.readline() == "writing\n"
        time.sleep(0.5)
        assert bed.kill("n2", "__mount")
        said, _ = writer.communicate(timeout=60)
        found = json.loads(said)
        assert set(found) >= {"write", "fsync"} and set(found.values()) <= LOST, found


WRITE_SYNCED = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.pwritev(file, [b"x" * (1 << 20)], 0, os.RWF_DSYNC)
print("written", flush=True)
time.sleep(600)
"""


def test_single_synced_write_outlives_the_death_of_the_mount(build):
    with nodes(2, build, clean_s=20) as bed, of_job(bed, "ada", "--engine", "ceph") as directory:
        writer = bed.popen("n2", [PYTHON, "-c", WRITE_SYNCED, directory / "file"], "ada")
        assert writer.stdout.readline() == "written\n"
        assert bed.kill("n2", "__mount")
        writer.kill()
        writer.wait()
        compare = f"head -c 1M /dev/zero | tr '\\0' x | cmp - {directory}/file"
        bed.run("n1", ["bash", "-c", compare], "ada")


PROGRAMS_OF_CEPH = ("ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool")
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


def with_older_library(root: pathlib.Path) -> pathlib.Path:
    """The Ceph of this machine in a directory, with a libcephfs that lacks a function."""
    root.mkdir()
    for folder in ("bin", "lib"):
        (root / folder).mkdir()
    for name in PROGRAMS_OF_CEPH:
        (root / "bin" / name).symlink_to(f"/usr/bin/{name}")
    for name in ("librados.so.2", "ceph", "rados-classes"):
        (root / "lib" / name).symlink_to(LIBRARIES / name)
    whole = (LIBRARIES / "libcephfs.so.2").read_bytes()
    assert b"\0ceph_ll_setlk\0" in whole
    (root / "lib" / "libcephfs.so.2").write_bytes(whole.replace(b"\0ceph_ll_setlk\0", b"\0ceph_ll_setlX\0"))
    return root


def test_library_without_a_function_gives_ceph_fuse_or_a_refusal(build):
    with nodes(2, build) as bed:
        root = with_older_library(bed.shared / "older")
        job = node_job(bed, f"{STRIPED}\ncat /proc/self/mounts", "--engine-root", root, "--explain", name="fallback")
        done = job.run()
        assert "the mounts use ceph-fuse, because forebay-mount cannot run on n1: " in done.stderr, done.stderr
        assert "it has no function ceph_ll_setlk" in done.stderr
        assert "/mount fuse.ceph-fuse" in done.stdout and "/mount fuse.forebay-mount" not in done.stdout
        assert "Appends of several nodes to one file lose bytes" in done.stderr
        profile = bed.shared / "own.toml"
        profile.write_text('engine = "ceph"\nclient = "forebay-mount"\n')
        words = ["--engine-profile", profile, "--engine-root", root]
        refused = node_job(bed, STRIPED, *words, name="refused").run(check=False)
        assert refused.returncode == 125
        assert "the client forebay-mount cannot run on n1: " in refused.stderr, refused.stderr


#: The libraries in the processes of mounts.
MAPPED_FILES = """
import pathlib
for process in pathlib.Path("/proc").iterdir():
    try:
        words = (process / "cmdline").read_bytes().split(b"\\0")
        if b"__mount" in words:
            maps = (process / "maps").read_text().splitlines()
            print(*sorted({line.split(maxsplit=5)[5] for line in maps if ".so" in line}), sep="\\n")
    except OSError:
        pass
"""


@pytest.mark.soak
def test_bundle_brings_the_library_of_the_client(build):
    with nodes(2, build) as bed:
        words = ["forebay", "engine", "bundle", "--output", bed.shared / "bundle"]
        bed.run("n1", words, seconds=300)
        script = f"{STRIPED}\ncat /proc/self/mounts; {PYTHON} {bed.shared}/maps.py"
        (bed.shared / "maps.py").write_text(MAPPED_FILES)
        done = node_job(bed, script, "--engine-root", bed.shared / "bundle", "--explain", name="bundled").run()
        assert "the mounts use forebay-mount" in done.stderr and "/mount fuse.forebay-mount" in done.stdout
        mapped = [line for line in done.stdout.splitlines() if line.startswith("/") and ".so" in line]
        assert any(line.endswith("bundle/lib/libcephfs.so.2") for line in mapped), mapped
        outside = [line for line in mapped if "/bundle/lib/" not in line]
        assert all(line.endswith("libforebay_ceph_preload.so") for line in outside), outside
