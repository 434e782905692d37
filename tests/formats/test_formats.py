"""Files that an earlier Forebay wrote are read by today's; make.py has made them (README.md)."""

import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import tarfile
import tempfile

import pytest

from formats.make import BOOT, HERE, HOST, NAMESPACE, TOLD, TOP, swapped
from support.job import PROFILES, Job
from support.mpi import launching
from support.tuner import TunedJob

LARGE = bytes(range(256)) * 1024


@pytest.fixture
def golden(build):
    """Unpacks a golden into the directories of a job, as if it had been left here."""
    if os.getuid() != 0:
        pytest.skip("these jobs were root's, as the names of their allocations say")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="forebay-format-", dir="/tmp"))
    scratch.chmod(0o711)
    job = Job(build / "bin" / "forebay", scratch)

    def unpacked(name: str) -> Job:
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        here = {TOP: str(scratch), BOOT: boot, NAMESPACE: os.readlink("/proc/self/ns/pid"), HOST: socket.gethostname()}
        with tarfile.open(HERE / f"{name}.tar.gz") as tar:
            for entry in tar:
                entry.name = swapped(entry.name.encode(), here).decode()
                entry.linkname = swapped(entry.linkname.encode(), here).decode()
                tar.extract(entry, scratch)
        for path in scratch.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.suffix != ".trace":
                times = path.stat()
                path.write_bytes(swapped(path.read_bytes(), here))
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return job

    yield unpacked
    job.command("clean", "--discard", "--kill")
    subprocess.run(["rm", "-rf", scratch], check=True)


def json_output(job: Job, *words: str):
    done = job.command(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cleaned(job: Job) -> None:
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert list(job.directory.rglob("*.part")) == []
    assert [path for path in job.leftovers() if path.name != "persistent"] == []


def same_sources(job: Job) -> None:
    """Journals know their sources by their inodes too, which an archive does not keep."""
    for path in job.state.rglob("*.journal"):
        with sqlite3.connect(path) as journal:
            names = journal.execute(
                "SELECT entry.id, CAST(source AS TEXT), CAST(name AS TEXT) FROM entry JOIN directory ON directory.id = entry.directory"
            )
            for entry, source, name in names.fetchall():
                inode = (pathlib.Path(source) / name).stat().st_ino
                journal.execute("UPDATE entry SET inode = ? WHERE id = ?", (inode, entry))
        journal.close()


def test_record_of_job_killed_while_preparing_is_cleaned(golden):
    job = golden("preparing")
    (record,) = job.state.glob("*.json")
    emulation = pathlib.Path(json.loads(record.read_text())["emulation"])
    assert emulation.parent == pathlib.Path("/dev/shm")
    mine = emulation.with_name(f"forebay-pfs-1-1-{job.directory.parent.name}")
    record.write_text(record.read_text().replace(str(emulation), str(mine)))
    mine.write_bytes(b"")
    (one,) = json_output(job, "status")
    assert (one["state"], one["phase"], one["undrained"]) == ("left", "preparing", False)
    cleaned(job)
    assert job.allocations() == [] and not mine.exists()
    assert (job.record()["state"], job.record()["killed"]) == ("ended", True)


def test_record_of_running_job_is_cleaned_with_its_uses_and_drained_parts(golden):
    job = golden("running")
    one, _ = json_output(job, "status")
    assert (one["state"], one["phase"], one["undrained"]) == ("left", "running", True)
    (allocation,) = json_output(job, "persistent", "list")
    assert [use["run_id"] for use in allocation["jobs"]] == [one["job_id"]], allocation
    cleaned(job)
    assert (job.directory / "results" / "large").read_bytes() == LARGE
    assert (job.directory / "p").read_bytes() == (job.directory / "drained" / "d.dat").read_bytes() == TOLD
    done = job.command("persistent", "destroy", "proj1", *job.where)
    assert done.returncode == 0, done.stderr
    assert job.allocations() == []


def test_requests_of_killed_job_are_staged_out(golden):
    job = golden("requests")
    assert json_output(job, "status")[0]["undrained"]
    cleaned(job)
    assert (job.directory / "asked").read_bytes() == TOLD
    assert sorted(path.name for path in (job.directory / "asked-d").iterdir()) == ["large", "small"]
    assert job.allocations() == []


def test_kept_job_has_its_journal_and_its_list(golden):
    job = golden("kept")
    (one,) = json_output(job, "status")
    assert (one["state"], one["undrained"], one["missing_files"], one["not_safe_files"]) == ("kept", True, 1, 1)
    (staging,) = json_output(job, "stage", "list", "--failed", one["job_id"])
    assert "a directory stands at its place" in staging["failures"][0]["reason"]
    (job.directory / "results" / "small").rmdir()
    cleaned(job)
    assert (job.directory / "results" / "small").read_bytes() == TOLD
    assert (job.directory / "results" / "large").read_bytes() == LARGE
    assert job.allocations() == []


def test_stage_out_of_killed_job_is_completed(golden):
    job = golden("staging-out")
    assert list((job.directory / "results").glob("*.part"))
    (one,) = json_output(job, "status")
    assert (one["state"], one["missing_files"]) == ("left", 2 - len(list((job.directory / "results").glob("[a-z]*"))))
    cleaned(job)
    assert (job.directory / "results" / "small").read_bytes() == TOLD
    assert (job.directory / "results" / "large").read_bytes() == LARGE
    assert job.allocations() == []


def test_stagings_are_shown_retried_and_forgotten(golden):
    job = golden("stagings")
    same_sources(job)
    found = {pathlib.Path(one["target"]).name: one for one in json_output(job, "stage", "status")}
    states = {name: one["state"] for name, one in found.items()}
    assert states == {name: name for name in ("interrupted", "cancelled", "failed", "done")}
    assert found["interrupted"]["copied_bytes"] >= 64 << 10, "pieces are known"
    (job.directory / "failed" / "small").rmdir()
    for name in ("interrupted", "cancelled", "failed"):
        done = job.command("stage", "retry", found[name]["id"])
        assert done.returncode == 0, done.stderr
    assert job.command("stage", "wait", found["done"]["id"]).returncode == 0
    assert job.command("stage", "forget", found["done"]["id"]).returncode == 0
    assert json_output(job, "stage", "list") == [] and list(job.directory.rglob("*.part")) == []
    for name in states:
        target = job.directory / name
        assert (target / "small").read_bytes() == TOLD and (target / "large").read_bytes() == LARGE


def test_persistent_allocations_are_listed_and_destroyed(golden):
    job = golden("persistent")
    listed = {one["persistent"]: one for one in json_output(job, "persistent", "list")}
    assert listed["proj1"]["capacity_bytes"] == 1 << 20 and listed["proj1"]["expires_unix_s"]
    assert listed["proj2"]["state"] == "missing"
    for words in (("proj1",), ("--hurry", "proj2")):
        done = job.command("persistent", "destroy", *words)
        assert done.returncode == 0, done.stderr
    assert job.allocations() == [] and json_output(job, "persistent", "list") == []


def test_record_of_job_is_reported_explained_and_replayed(golden, build):
    job = golden("record")
    (record,) = (job.state / PROFILES).iterdir()
    report = job.command("report", record.name)
    assert report.returncode == 0 and "data" in report.stdout, report.stderr
    assert job.command("why", record.name).returncode == 0
    (trace,) = record.glob("trace-*")
    replay = build / "lib" / "forebay" / "openmpi" / "forebay-replay"
    printed = subprocess.run([replay, "--print", trace], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.count(" write_at_all file=0 ") == 4, printed.stdout


def test_record_of_program_without_mpi_is_reported(golden):
    job = golden("process")
    (record,) = (job.state / PROFILES).iterdir()
    assert list(record.glob("process-*.json"))
    report = job.command("report", record.name)
    assert report.returncode == 0 and "data" in report.stdout and "2 MiB" in report.stdout, report.stdout


def test_study_is_shown_and_continued(golden, build):
    job = golden("study")
    tuned = TunedJob(job.directory)
    runs = tuned.runs()
    assert [run.phase for run in runs] == ["default", "probe"]
    report = job.command("report", "job.tune")
    assert report.returncode == 0 and "too early" in " ".join(report.stdout.split()), report.stderr
    path = f"{build / 'kernels'}:{os.environ['PATH']}"
    done = job.command("tune", "--budget", "3", "job.sh", PATH=path, **launching())
    assert done.returncode == 0, done.stderr
    assert tuned.runs()[:2] == runs
