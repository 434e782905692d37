"""The machine is started again while a job computes: its processes and all memory are gone, its disk store is there.

The restart is as true as it can be without one: everything of the job is killed at once, the view's keeper included,
what lies in memory and in the directory for temporary files is removed, and the kernel says another boot_id.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import uuid

import pytest

from support.job import DW, KILL
from support.persistent import CREATE
from support.strace import has_ended, strace
from support.users import make, reachable, started
from support.waiting import wait_until
from support.trees import named

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
BODY = "mkdir $DW_JOB_STRIPED/out; echo precious > $DW_JOB_STRIPED/out/it; touch running; exec sleep 60"

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can show another boot_id")


class Restarted:
    """Runs forebay on the machine as it is after its restart."""

    def __init__(self, job):
        self.job = job
        self.boot_id = job.directory.parent / "boot_id"
        self.boot_id.write_text(f"{uuid.uuid4()}\n")

    def command(self, *words):
        shown = f"mount --bind '{self.boot_id}' /proc/sys/kernel/random/boot_id"
        become = ["setpriv", "--reuid", str(self.job.user), "--regid", str(self.job.user), "--clear-groups"]
        inside = f'{shown} && exec "$@"'
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", inside, "sh", *become, self.job.forebay, *words],
            cwd=self.job.directory,
            env=self.job.environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )

    def status(self):
        return [one for one in json.loads(self.command("status", "--json").stdout) if "job_id" in one]


def killed_at_once(job):
    """As by a power cut: whatever the job had started, and whoever held its view."""
    own = f"TMPDIR={job.temporary}".encode()
    killed = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if own in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), KILL)
                killed.append(process.name)
    wait_until(lambda: all(map(has_ended, killed)))
    for path in job.temporary.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def cut_off(job, *options):
    process = job.start(*options)
    started(job, process)
    killed_at_once(job)
    process.wait(timeout=300)
    process.stdout.close()
    process.stderr.close()
    return Restarted(job)


@pytest.fixture
def job(build):
    # After a restart the processes of a user count, and all of root's would.
    with reachable(build) as job:
        job.as_nobody()
        yield job


@pytest.mark.parametrize("how", ["while it computes", "in its stage-out"])
def test_data_on_disk_are_reported_and_drained_after_a_restart(job, how):
    body = BODY
    if how == "in its stage-out":
        body = BODY.replace("exec sleep 60", "").replace(
            "touch running", "head -c 2M /dev/zero > $DW_JOB_STRIPED/out/large"
        )
        body += "touch running"
    job.script(body, DW, STAGE_OUT)
    machine = cut_off(job, "--stage-rate", "1MiB")
    (left,) = machine.status()
    assert (left["state"], left["undrained"], left["processes"]) == ("left", True, [])
    assert (pathlib.Path(left["data"]) / "striped" / "out" / "it").exists()
    assert "not staged out" in machine.command("status").stdout
    done = machine.command("clean")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "it").read_text() == "precious\n"
    assert named(job.directory, "*.part") == []
    job.leaves_nothing()


def test_each_change_of_the_record_is_synced_before_the_job_goes_on(job):
    """A power cut that loses what is not synced leaves the record as it was before the script."""
    trace = job.directory.parent / "trace"
    trace.touch()
    trace.chmod(0o666)
    job.script("true", DW, STAGE_OUT.replace("type=directory", "type=file"))
    calls = [*strace(), "-f", "-y", "-s", "4096", "-qq", "-o", trace, "-e", "trace=fsync,execve,/^rename", job.forebay]
    subprocess.run(
        [*calls, "run", *job.where, "job.sh"],
        cwd=job.directory, env=job.environment(), capture_output=True, user=job.user, group=job.user, extra_groups=[],
    )  # fmt: skip
    replaced = re.compile(rf'rename[^"]*"({job.state}/[^"/]*\.fresh)"')
    seen = [line.split(maxsplit=1) for line in trace.read_text().splitlines()]
    found = ((at, replaced.match(call)) for at, (_, call) in enumerate(seen))
    changes = [(at, match[1]) for at, match in found if match and ".journal." not in match[1]]
    next_calls = []
    for at, file in changes:
        assert [call for _, call in seen[:at] if call.startswith("fsync") and f"<{file}>" in call], seen[at]
        after = [call for process, call in seen[at + 1 :] if process == seen[at][0]]
        assert after[0].startswith("fsync") and f"<{job.state}>" in after[0], (seen[at], after[:2])
        next_calls += after[1:2]
    assert len(changes) >= 3 and any(call.startswith("execve") for call in next_calls), seen


def test_data_in_memory_are_reported_lost_after_a_restart(job):
    job.in_memory()
    job.script(BODY, DW, STAGE_OUT)
    machine = cut_off(job)
    (left,) = machine.status()
    assert (left["state"], left["data"]) == ("lost", None)
    done = machine.command("clean")
    assert done.returncode == 1 and "its results are lost" in done.stderr
    assert machine.command("clean").returncode == 0
    assert not (job.directory / "results").exists()
    job.leaves_nothing()


def test_failures_before_a_restart_are_still_reported_with_missing_files(job):
    make(job, job.directory / "results" / "it")
    job.script(BODY.replace("exec sleep 60", "echo b > $DW_JOB_STRIPED/out/b"), DW, STAGE_OUT)
    assert job.run().returncode == 123
    killed_at_once(job)
    machine = Restarted(job)
    (left,) = machine.status()
    assert (left["state"], left["missing_files"], left["missing_bytes"]) == ("kept", 1, 9)
    failed = json.loads(machine.command("stage", "list", "--failed", "--json", left["job_id"]).stdout)
    assert "a directory stands at its place" in failed[0]["failures"][0]["reason"]
    (job.directory / "results" / "it").rmdir()
    assert machine.command("clean").returncode == 0
    assert (job.directory / "results" / "it").read_text() == "precious\n"
    job.leaves_nothing()


def test_store_mounted_later_is_waited_for(job):
    job.script(BODY, DW, STAGE_OUT)
    machine = cut_off(job)
    away = job.store.with_name("not mounted yet")
    job.store.rename(away)
    make(job, job.store)
    (left,) = machine.status()
    assert left["state"] == "unreachable"
    assert "is its file system mounted?" in machine.command("clean").stderr
    job.store.rmdir()
    away.rename(job.store)
    assert machine.command("clean").returncode == 0
    assert (job.directory / "results" / "it").read_text() == "precious\n"
    job.leaves_nothing()


def test_user_staging_after_restart_copies_unsynced_files_again(job):
    make(job, job.directory / "in", x="x" * (2 << 20))
    process = job.forebay_starts("stage", "out", "--piece", "64KiB", "--rate", "1MiB", "in", "out")
    wait_until(lambda: named(job.directory, "*.part"), process=process)
    killed_at_once(job)
    process.wait(timeout=300)
    machine = Restarted(job)
    (left,) = json.loads(machine.command("stage", "list", "--json").stdout)
    assert left["state"] == "interrupted"
    assert machine.command("stage", "retry", left["id"]).returncode == 0
    assert (job.directory / "out" / "x").read_text() == "x" * (2 << 20)
    assert named(job.directory, "*.part") == []


def test_stage_in_to_persistent_allocation_leaves_no_partial_file_after_restart(job):
    """Killed, not restarted: the allocation is others', too, and nobody would come back for them."""
    make(job, job.directory / "input", large="x" * (4 << 20))
    job.script(
        "touch running",
        CREATE.replace("1MiB", "64MiB"),
        "#DW persistentdw name=proj1",
        "#DW stage_in type=directory source=%d/input destination=$DW_PERSISTENT_STRIPED_proj1/input",
    )
    process = job.start("--stage-rate", "1MiB")
    job.stop_when(process, lambda: named(job.store, "*.part"), KILL)
    assert named(job.store, "*.part")
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert named(job.store, "*.part") == [] and not (job.directory / "running").exists()
    assert job.command("persistent", "destroy", "proj1", *job.where).returncode == 0
