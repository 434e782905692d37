"""Programs that are killed, or end in a way of their own: what they did until then is in the record, once."""

import collections
import json
import os
import random
import signal
import struct
import subprocess
import sys

import pytest

from support.job import KILL, Job
from support.waiting import wait_until

RUN_SECONDS_MAX = 300
BYTES = 2_000_000
DAMAGED = 60


def run(mpi, record, *command: object):
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(mpi.library), "FOREBAY_PROFILE": str(record)}
    return subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX
    )


def reports(record, kind: str = "process") -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(record.glob(f"{kind}-*.json"))]


def live_files(record) -> list:
    return sorted(record.glob("live-*"))


def written(processes: list[dict]) -> collections.Counter:
    """Bytes of each file, over all processes."""
    found: collections.Counter = collections.Counter()
    for process in processes:
        for file in process["files"]:
            found[file["path"]] += file["write"]["system_bytes"]
    return found


def without_times(report: dict) -> list[dict]:
    """Its files, without what differs from run to run."""
    return [
        {name: value for name, value in file.items() if name not in ("seconds", "moments", "not_closed")}
        | {
            direction: {
                name: value for name, value in file[direction].items() if name not in ("moments", "system_moments")
            }
            for direction in ("read", "write")
        }
        for file in report["files"]
    ]


def test_killed_process_is_reported_as_one_that_ended(mpi, direct, record, tmp_path):
    assert run(mpi, record, direct, "killed", tmp_path / "f").returncode == -signal.SIGKILL
    [live_file_content] = live_files(record)
    assert live_file_content.stat().st_mode & 0o077 == 0
    done = mpi.collect(record)
    assert (done.returncode, done.stderr, live_files(record)) == (0, "", [])
    [killed] = reports(record)
    assert (killed["finished"], killed["wall_s"]) == (False, None)
    assert (killed["program"], killed["arguments"]) == (str(direct), ["killed", str(tmp_path / "f")])
    assert killed["recovered"]["ranks"] == 1 and not killed["recovered"]["torn"]
    assert 0 < killed["io_s"]["sum"] <= killed["recovered"]["until_s"]
    for path in record.glob("process-*.json"):
        path.unlink()
    assert run(mpi, record, direct, "large", tmp_path / "f").returncode == 0
    [ended] = reports(record)
    assert without_times(killed) == without_times(ended)
    assert (record / "processes").stat().st_size == 2


def test_process_that_ends_by_exit_of_its_own_finishes_its_report(mpi, direct, record, tmp_path):
    assert run(mpi, record, direct, "left", tmp_path / "f").returncode == 0
    [process] = reports(record)
    assert process["finished"] and written([process]) == {str(tmp_path / "f"): BYTES}
    assert live_files(record) == []


def test_process_that_runs_is_left_alone(mpi, direct, record, tmp_path):
    words = [sys.executable, "-c", f"open({str(tmp_path / 'f')!r}, 'wb').write(bytes(3 << 20)); input()"]
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(mpi.library), "FOREBAY_PROFILE": str(record)}
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE)
    try:
        wait_until(lambda: live_files(record), what="its live file", process=process)
        assert mpi.collect(record).returncode == 0
        assert len(live_files(record)) == 1 and reports(record) == []
    finally:
        process.communicate(b"\n", timeout=RUN_SECONDS_MAX)
    [ended] = reports(record)
    assert ended["finished"] and live_files(record) == []


def test_children_of_a_fork_are_counted_once(mpi, direct, record, tmp_path):
    """One ends by _exit, one is killed, one ends by exit; the parent goes on."""
    assert run(mpi, record, direct, "children", tmp_path / "f").returncode == 0
    assert mpi.collect(record).returncode == 0 and live_files(record) == []
    found = reports(record)
    assert sorted(process["finished"] for process in found) == [False, True, True, True]
    assert len({process["pid"] for process in found}) == 4
    own = {str(tmp_path / f"f.{kind}"): BYTES for kind in range(3)}
    assert written(found) == own | {str(tmp_path / "f"): 5 * BYTES}
    assert sorted(sum(file["opens"] for file in process["files"]) for process in found) == [1, 1, 1, 1]


def test_fork_while_other_threads_count_loses_nothing(mpi, direct, record, tmp_path):
    for _ in range(5):
        assert run(mpi, record, direct, "forking_threads", tmp_path / "f").returncode == 0
    found = reports(record)
    assert len(found) == 25 and live_files(record) == []
    assert written(found)[str(tmp_path / "f")] == 5 * 8 * BYTES
    assert sum(written(found).values()) == 5 * 12 * BYTES


WORKERS = """
import multiprocessing, os, sys
def work(name):
    with open(name, "wb", buffering=0) as file:
        for _ in range(4):
            file.write(bytes(1 << 20))
    return os.getpid()
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.map(work, [f"{sys.argv[2]}.{number}" for number in range(6)])
        pool.close()
        pool.join()
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_of_multiprocessing_are_counted(openmpi, record, tmp_path, method):
    (tmp_path / "workers.py").write_text(WORKERS)
    done = run(openmpi, record, sys.executable, tmp_path / "workers.py", method, tmp_path / "f")
    assert (done.returncode, done.stderr) == (0, "")
    assert openmpi.collect(record).returncode == 0
    names = {str(tmp_path / f"f.{number}"): 4 << 20 for number in range(6)}
    assert {path: size for path, size in written(reports(record)).items() if path in names} == names


def test_terminated_worker_is_counted(openmpi, record, tmp_path):
    """A pool ends its workers by SIGTERM."""
    (tmp_path / "workers.py").write_text(WORKERS.replace("        pool.close()\n        pool.join()\n", ""))
    run(openmpi, record, sys.executable, tmp_path / "workers.py", "fork", tmp_path / "f")
    assert openmpi.collect(record).returncode == 0 and live_files(record) == []
    assert sum(size for path, size in written(reports(record)).items() if "/f." in path) == 24 << 20


def test_mpi_program_without_finalize_has_all_its_ranks(mpi, record, tmp_path):
    mpi.run(2, mpi.ending(), "leaving", tmp_path / "f", FOREBAY_PROFILE=record)
    assert len(live_files(record)) == 2
    [began] = reports(record, "step")
    # mpiexec does not wait for ranks that end so, and the files of those that run stay.
    wait_until(lambda: mpi.collect(record).returncode == 0 and live_files(record) == [], what="the ranks' end")
    [step] = reports(record, "step")
    assert {name: step[name] for name in began if name not in ("files", "files_dropped", "files_joined")} == {
        name: value for name, value in began.items() if name not in ("files", "files_dropped", "files_joined")
    }
    [file] = step["files"]
    assert (file["path"], file["layer"], file["ranks"]) == (str(tmp_path / "f"), "mpiio", 2)
    assert file["write"]["asked_bytes"] == file["write"]["system_bytes"] == 2000
    assert file["write"]["end_bytes"] == 1000
    assert step["recovered"]["ranks"] == 2 and step["hosts"] == 1


def test_finished_mpi_program_leaves_no_live_file(mpi, record, tmp_path):
    assert mpi.run(2, mpi.ending(), "finishing", tmp_path / "f", FOREBAY_PROFILE=record).returncode == 0
    assert live_files(record) == []
    [step] = reports(record, "step")
    assert step["finished"] and "recovered" not in step


def test_live_file_of_a_finished_step_does_not_replace_it(mpi, record, tmp_path):
    """A rank may be killed behind MPI_Finalize."""
    mpi.run(1, mpi.ending(), "leaving", tmp_path / "f", FOREBAY_PROFILE=record)
    [path] = record.glob("step-*.json")
    finished = json.dumps(json.loads(path.read_text()) | {"finished": True, "files": [{"path": "/kept"}]}) + "\n"
    path.write_text(finished)
    # mpiexec does not wait for ranks that end so.
    wait_until(lambda: mpi.collect(record).returncode == 0 and live_files(record) == [], what="the rank's end")
    assert path.read_text() == finished


def test_program_in_a_full_record_runs_on(mpi, direct, record, tmp_path):
    if os.getuid() != 0:
        pytest.skip("mounts a small file system")
    script = f"mount -t tmpfs -o size=40k none {record} && {direct} killed {tmp_path}/f; echo $?; ls {record}"
    done = run(mpi, record, "unshare", "-m", "bash", "-c", script)
    assert done.stdout == "137\n"
    assert (tmp_path / "f").stat().st_size == BYTES


@pytest.fixture
def live_file_content(openmpi, direct, record, tmp_path):
    """The content of a killed program's live file."""
    run(openmpi, record, direct, "killed", tmp_path / "f")
    [path] = live_files(record)
    content = path.read_bytes()
    path.unlink()
    return content


HEAD_BYTES_AT, USED_BYTES_AT = 12, 32


def test_torn_live_file_is_read_as_far_as_it_goes(openmpi, record, live_file_content):
    (head_bytes,) = struct.unpack_from("I", live_file_content, HEAD_BYTES_AT)
    (program_bytes,) = struct.unpack_from("I", live_file_content, head_bytes + 4)
    (record / "live-1-1").write_bytes(live_file_content[: head_bytes + program_bytes + 100])
    assert openmpi.collect(record).returncode == 0
    assert reports(record) == [], "too little of it is left for a report"
    grown = bytearray(live_file_content)
    struct.pack_into("Q", grown, USED_BYTES_AT, len(live_file_content) + 1000)
    (record / "live-1-1").write_bytes(grown)
    assert openmpi.collect(record).returncode == 0
    [process] = reports(record)
    assert process["recovered"]["torn"] and process["files"][0]["write"]["system_bytes"] == BYTES


@pytest.mark.parametrize("length", [0, 100, 65536])
def test_old_live_file_that_was_never_begun_is_removed(openmpi, record, length):
    """A process may just be filling a young one."""
    young, old = record / "live-1-1", record / "live-2-2"
    for path in (young, old):
        path.write_bytes(bytes(length))
    os.utime(old, (1, 1))
    done = openmpi.collect(record)
    assert (done.returncode, done.stderr, live_files(record)) == (0, "", [young])


def test_damaged_live_files_are_refused_or_read(openmpi, record, live_file_content):
    """Bits that flipped, ends that are missing: never a crash, never JSON that cannot be read."""
    chance = random.Random(7)
    used = struct.unpack_from("Q", live_file_content, USED_BYTES_AT)[0]
    for number in range(DAMAGED):
        damaged = bytearray(live_file_content)
        for _ in range(chance.choice([1, 1, 8])):
            at = chance.randrange(used)
            damaged[at] ^= 1 << chance.randrange(8)
        if chance.random() < 0.3:
            del damaged[chance.randrange(used) :]
        path = record / f"live-1-{number}"
        path.write_bytes(damaged)
        done = openmpi.collect(record)
        assert done.returncode in (0, 1), (number, done)
        assert done.returncode == 0 or f"{path}: " in done.stderr or "cannot be written" in done.stderr
        path.unlink(missing_ok=True)
        for report in record.glob("*.json"):
            try:
                assert json.loads(report.read_text())["recovered"]["ranks"] == 1
            except ValueError:
                assert bytes(damaged[:used]) != live_file_content[:used], "its own words were damaged"
            report.unlink()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_live_file_of_another_user_is_refused(openmpi, record, live_file_content):
    path = record / "live-1-1"
    path.write_bytes(live_file_content)
    os.chown(path, 65534, 65534)
    done = openmpi.collect(record)
    assert done.returncode == 1 and "another user" in done.stderr
    assert path.exists() and reports(record) == []


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_plain_file_is_refused(openmpi, record, live_file_content, tmp_path, kind):
    path = record / "live-1-1"
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(live_file_content)
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert openmpi.collect(record).returncode == 1
    assert path.is_symlink() or path.exists()
    assert reports(record) == []


KILLS_ITSELF = """
import os
with open("out", "wb", buffering=0) as file:
    for _ in range(4):
        file.write(bytes(1 << 20))
os.kill(os.getpid(), 9)
"""


def test_killed_program_of_a_job_is_in_the_report(job: Job):
    (job.directory / "kill.py").write_text(KILLS_ITSELF)
    job.script(f"{sys.executable} kill.py; true")
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert "I/O took" in done.stderr, "its share is known"
    [record] = job.records()
    assert live_files(record) == []
    shown = job.command("report", record.name)
    assert "4 MiB written" in shown.stdout and "was killed" in shown.stdout, shown.stdout + shown.stderr


WAITS = KILLS_ITSELF.replace("os.kill(os.getpid(), 9)", 'open("written", "w").close()\nimport time\ntime.sleep(600)')


def test_clean_completes_the_record_of_a_killed_job(job: Job):
    (job.directory / "wait.py").write_text(WAITS)
    job.script(f"{sys.executable} wait.py")
    job.stop_when(job.start(), (job.directory / "written").exists, KILL)
    [record] = job.records()
    assert len(live_files(record)) == 1 and reports(record) == []
    assert "there is no report yet" in job.command("report", record.name).stdout
    done = job.command("clean", "--kill", "--discard")
    assert done.returncode == 0, done.stderr
    assert live_files(record) == []
    [process] = reports(record)
    assert written([process])[str(job.directory / "out")] == 4 << 20
