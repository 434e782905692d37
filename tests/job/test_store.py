"""The store in memory: a file system of the job's own, whose size is a hard limit."""

import contextlib
import json
import os
import pathlib
import subprocess

from support import cgroup
import pytest

from support.job import DW, finished
from support.waiting import wait_until

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
MIB = 1 << 20


def test_job_beyond_its_capacity_gets_enospc_and_its_memory_is_freed(memory):
    memory.script(
        "mkdir $DW_JOB_STRIPED/out; head -c 60M /dev/zero > $DW_JOB_STRIPED/out/fits\n"
        "LC_ALL=C head -c 60M /dev/zero > $DW_JOB_STRIPED/large 2> said; grep -c 'No space left' said\n"
        "stat -f -c '%b %S' $DW_JOB_STRIPED",
        DW,
        STAGE_OUT,
    )
    done = memory.run()
    assert done.returncode == 0, done.stderr
    refused, (blocks, size) = done.stdout.splitlines()[0], done.stdout.splitlines()[1].split()
    assert refused == "1" and int(blocks) * int(size) == 64 * MIB
    assert (memory.directory / "results" / "fits").stat().st_size == 60 * MIB
    memory.leaves_nothing()


def test_view_is_private_to_the_job_and_grants_no_rights(memory):
    memory.script(
        "echo $DW_JOB_STRIPED; grep CapEff /proc/self/status; id -u; touch inside; until [ -e seen ]; do sleep 0.01; done\n"
        "touch /mnt/x 2>/dev/null && echo wrote",
        DW,
    )
    process = memory.start()
    wait_until((memory.directory / "inside").exists, process=process)
    (record,) = json.loads(memory.command("status", "--json").stdout)
    outside = pathlib.Path("/mnt/forebay").exists()
    reached = os.listdir(record["data"])
    (memory.directory / "seen").touch()
    done = finished(process)
    assert done.returncode in (0, 1), done.stderr
    path, rights, user = done.stdout.splitlines()
    assert path == f"/mnt/forebay/{record['job_id']}/striped/"
    assert record["state"] == "running" and sorted(reached) == ["requests.socket", "striped"] and not outside
    assert int(user) == (memory.user or 0)
    assert memory.user is None or int(rights.split()[1], 16) == 0
    memory.leaves_nothing()


def test_memory_store_handles_signals_leftovers_and_failures(memory):
    memory.script(
        "mkdir $DW_JOB_STRIPED/out; (sleep 300 & sleep 300) & echo x > $DW_JOB_STRIPED/out/x; kill -SEGV $$",
        DW,
        STAGE_OUT,
    )
    done = memory.run()
    assert done.returncode == 128 + 11 and "left behind, ended before stage-out: " in done.stderr, done.stderr
    assert (memory.directory / "results" / "x").read_text() == "x\n"
    memory.leaves_nothing()


def test_job_that_clears_its_temporary_directory_keeps_its_data(memory):
    memory.script("mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x; rm -rf $TMPDIR/*", DW, STAGE_OUT)
    done = memory.run()
    assert done.returncode == 0, done.stderr
    assert (memory.directory / "results" / "x").read_text() == "x\n"
    memory.leaves_nothing()


def test_nested_run_has_its_own_memory(memory):
    inner = memory.directory / "inner.sh"
    inner.write_text(f"#!/bin/bash\n{DW}\ndf --output=target $DW_JOB_STRIPED | tail -1; ls $DW_JOB_STRIPED | wc -l\n")
    memory.script(f"touch $DW_JOB_STRIPED/outer; {memory.forebay} run inner.sh; ls $DW_JOB_STRIPED", DW)
    done = memory.run()
    target, count, outer = done.stdout.split()
    assert target.startswith("/mnt/forebay/") and (count, outer) == ("0", "outer"), done.stderr
    memory.leaves_nothing()


@pytest.mark.soak
def test_small_files_take_no_more_than_on_a_plain_tmpfs(job, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root may mount a tmpfs to compare with")
    (job.directory / "fill.py").write_text(
        "import os, sys\n"
        "for number in range(100_000):\n"
        "    with open(f'{sys.argv[1]}/{number}', 'wb') as file: file.write(bytes(4096))\n"
        "found = os.statvfs(sys.argv[1])\n"
        "print((found.f_blocks - found.f_bfree) * found.f_frsize)\n"
    )
    job.in_memory()
    job.script("python3 fill.py $DW_JOB_STRIPED", DW.replace("64MiB", "1GiB"))
    done = job.run()
    assert done.returncode == 0, done.stderr
    plain = tmp_path / "plain"
    plain.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "plain", plain], check=True)
    try:
        fill = subprocess.run(["python3", job.directory / "fill.py", plain], check=True, capture_output=True, text=True)
    finally:
        subprocess.run(["umount", plain], check=True)
    assert 100_000 * 4096 <= int(done.stdout) <= 1.1 * int(fill.stdout)


#: Maps a file, touches each page, and prints the KiB that are mapped by huge pages.
MAPPED_BY_HUGE_PAGES = """\
import mmap, os, re, sys

file = os.open(sys.argv[1], os.O_RDWR)
mapped = mmap.mmap(file, 0)
sum(mapped[at] for at in range(0, len(mapped), 4096))
smaps = open("/proc/self/smaps").read().partition(sys.argv[1])[2]
print(re.search("ShmemPmdMapped: *([0-9]+)", smaps)[1])
"""


@pytest.mark.soak
@pytest.mark.parametrize("store, huge", [("memory", False), ("memory:huge", True)])
def test_huge_pages_are_used_only_on_request(memory, store, huge):
    (memory.directory / "mapped.py").write_text(MAPPED_BY_HUGE_PAGES)
    memory.script(
        "grep ' /mnt/forebay/' /proc/self/mountinfo; head -c 200M /dev/zero > ${DW_JOB_STRIPED}x\n"
        "python3 mapped.py ${DW_JOB_STRIPED}x",
        DW.replace("64MiB", "256MiB"),
    )
    done = memory.run("--store", store)
    assert done.returncode == 0, done.stderr
    mount, mapped_kib = done.stdout.splitlines()
    assert ("huge=always" in mount) == huge
    assert int(mapped_kib) > 100 << 10 if huge else int(mapped_kib) == 0


@pytest.mark.xdist_group("memory")
def test_job_in_a_cgroup_without_room_is_refused_before_it_starts(memory):
    memory.script("touch started", DW.replace("64MiB", "1GiB"))
    with cgroup.limited(512 * MIB) as group:
        command = cgroup.within(group, [memory.forebay, "run", "job.sh"])
        who = {"user": memory.user, "group": memory.user, "extra_groups": []} if memory.user else {}
        if who:  # an ordinary user is put into the group by root
            command = cgroup.within(
                group, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", memory.forebay, "run", "job.sh"]
            )
        done = subprocess.run(command, cwd=memory.directory, env=memory.environment(), capture_output=True, text=True)
    assert done.returncode == 125 and not (memory.directory / "started").exists()
    assert "1.00 GiB in memory does not fit" in done.stderr and f"{group} is limited to 512.00 MiB" in done.stderr
    assert "--mem" in done.stderr and "--capacity" in done.stderr
    memory.leaves_nothing()


@pytest.mark.xdist_group("memory")
def test_job_that_fits_its_cgroup_gets_enospc_and_is_not_killed(memory):
    memory.script("LC_ALL=C head -c 200M /dev/zero > $DW_JOB_STRIPED/x 2> said; cat said", DW.replace("64MiB", "1GiB"))
    with cgroup.limited(512 * MIB) as group:
        words = [memory.forebay, "run", "--capacity", "150MiB", "job.sh"]
        if memory.user:
            words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
        done = subprocess.run(
            cgroup.within(group, words), cwd=memory.directory, env=memory.environment(), capture_output=True, text=True
        )
        assert done.returncode == 0 and "No space left on device" in done.stdout, done
    memory.leaves_nothing()


def test_memory_without_a_view_is_a_directory_with_a_watched_size(memory):
    memory.script("echo $DW_JOB_STRIPED; head -c 65M /dev/zero > $DW_JOB_STRIPED/x", DW)
    done = memory.run("--no-userns")
    assert done.returncode == 0 and done.stdout.startswith("/dev/shm/forebay-"), done.stderr
    assert (
        "using /dev/shm: no private memory file system (--no-userns)" in done.stderr and "not enforced" in done.stderr
    )
    assert "the job left 65.00 MiB in an allocation of 64.00 MiB" in done.stderr
    assert not pathlib.Path(done.stdout.strip()).parent.exists()
    memory.leaves_nothing()
    done = memory.run("--no-userns", "--store", "memory:huge")
    assert done.returncode == 125 and "needs a private view" in done.stderr
    memory.leaves_nothing()


def test_job_runs_without_a_view_where_the_machine_refuses_it(job):
    if os.getuid() != 0:
        pytest.skip("needs a user namespace in which to set limits")
    job.in_memory()
    job.script("echo $DW_JOB_STRIPED; mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x", DW, STAGE_OUT)
    # Limits hold for the user namespace in which they are set, and for those in it.
    limits = "for kind in user mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done"
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{limits}; exec "$0" run job.sh', job.forebay]
    done = subprocess.run(command, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("/dev/shm/forebay-") and "no private memory file system" in done.stderr
    allocated = [line for line in done.stderr.splitlines() if line.startswith("forebay: allocated")]
    assert len(allocated) == 1 and "in /dev/shm" in allocated[0], done.stderr
    assert (job.directory / "results" / "x").read_text() == "x\n"
    job.leaves_nothing()


@contextlib.contextmanager
def only_in(directory: pathlib.Path, size: str):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "small", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


def test_store_full_during_the_run_loses_no_written_data(job):
    if os.getuid() != 0:
        pytest.skip("only root may mount a small file system")
    with only_in(job.store, "20m"):
        job.script(
            "mkdir $DW_JOB_STRIPED/out; head -c 10M /dev/zero > $DW_JOB_STRIPED/out/first || exit 1\n"
            "head -c 40M /dev/zero > $DW_JOB_STRIPED/out/second || exit 28",
            DW,
            STAGE_OUT,
        )
        done = job.run()
        assert done.returncode == 28, done.stderr
        assert (job.directory / "results" / "first").stat().st_size == 10 * MIB
        assert "the script asks for 64.00 MiB; the store has" in done.stderr
        job.leaves_nothing()


#: As numpy.memmap("x", mode="r+")[:] += 1: each page is read before it is written.
INCREMENT = """python3 - "$DW_JOB_STRIPED/out/x" <<'END'
import mmap, os, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[:] = bytes(byte + 1 for byte in mapped[:])
    mapped.flush()
    os.fsync(file.fileno())
END
"""


@pytest.mark.parametrize("size", [3, 9 << 20])
@pytest.mark.parametrize("before", ["staged in", "drained"])
def test_write_through_a_mapping_is_staged_out(memory, before, size):
    results = memory.directory / "results"
    stage_in = STAGE_OUT.replace("stage_out", "stage_in").replace("source=$DW_JOB_STRIPED/out", "source=%d/results")
    stage_in = stage_in.replace("destination=%d/results", "destination=$DW_JOB_STRIPED/out")
    if before == "staged in":
        results.mkdir()
        (results / "x").write_bytes(b"a" * size)
        (results / "y").write_bytes(b"same")
        if memory.user is not None:
            for path in (results, results / "x", results / "y"):
                os.chown(path, memory.user, memory.user)
        memory.script(INCREMENT, DW, stage_in, STAGE_OUT)
        done = memory.run("--json")
    else:
        made = f"mkdir out; head -c {size} /dev/zero | tr '\\0' a > out/x; printf same > out/y; '{memory.forebay}' drain wait"
        memory.script(f"(cd $DW_JOB_STRIPED; {made}) > /dev/null\n{INCREMENT}", DW, STAGE_OUT)
        done = memory.run("--json", "--drain", "*")
    assert done.returncode == 0, done.stderr
    assert (results / "x").read_bytes() == b"b" * size
    staged = json.loads(done.stdout)["stage_out"]
    assert (staged["files"], staged["bytes"]) == (2, size + 4) and staged["unchanged_files"] >= 1
    memory.leaves_nothing()
