"""`forebay profile`: any command, recorded; and the verbs that forebay hands to forebay-py."""

import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess

import pytest

from support.job import INTERRUPT, KILL, PROFILES, finished
from support.strace import has_ended
from support.mpi import Mpi
from support.users import reachable
from support.waiting import wait_until

# Counts the signals it gets, and ends when it is told to.
COUNTING = "trap 'echo INT >> got' INT; trap 'echo TERM >> got' TERM; trap 'echo HUP >> got' HUP; trap 'echo USR1 >> got' USR1; touch running; until [ -e go ]; do sleep 0.01; done; exit 5"


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request, build, tmp_path):
    return Mpi(request.param, build)


def profile(job, *words, **environment):
    return job.command("profile", *words, **environment)


def test_mpi_program_is_recorded(job, mpi):
    started = [f"mpiexec.{mpi.family}", "-n", "2", mpi.observed(), "independent", job.directory / "f"]
    root = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    done = profile(job, "--", *started, **root)
    assert done.returncode == 0, done.stderr
    (record,) = job.records()
    (step,) = [json.loads(path.read_text()) for path in record.glob("step-*.json")]
    assert (step["finished"], step["ranks"]) == (True, 2)
    said = job.record()
    assert (said["kind"], said["script"], said["command"]) == ("profile", None, [str(word) for word in started])
    assert said["library"].endswith(f"/{mpi.family}/libforebay_mpi.so")
    assert {"job_status": 0, "exit_code": 0}.items() <= said["outcome"].items() and said["outcome"]["job_s"] > 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("forebay: ")]
    assert line.endswith(f": forebay report {record.name}")
    job.leaves_nothing()


def test_exit_code_is_that_of_the_command(job):
    closed = job.directory / "closed"
    closed.write_text("")
    for words, code in (
        (["true"], 0),
        (["false"], 1),
        (["sh", "-c", "exit 9"], 9),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-command"], 127),
        ([closed], 126),
    ):
        done = profile(job, "--", *words)
        assert done.returncode == code, (words, done.stderr)
        said = json.loads((job.records()[-1] / "job.json").read_text())
        assert said["state"] == "ended"
        if code in (126, 127):
            assert said["outcome"] is None and said["error"] in done.stderr and said["hint"] in done.stderr
        else:
            assert said["outcome"]["exit_code"] == code and done.stderr == ""
    assert profile(job).returncode == 2 and len(job.records()) == 6


def test_command_inherits_the_streams_and_json_moves_its_output_to_stderr(job):
    said = subprocess.run(
        [job.forebay, "profile", "--", "cat"], input="x\n", env=job.environment(), capture_output=True, text=True
    )
    assert (said.returncode, said.stdout) == (0, "x\n")
    done = profile(job, "--json", "--", "echo", "said")
    account = json.loads(done.stdout)
    assert (account["exit_code"], account["profile"]) == (0, str(job.records()[-1])) and "said\n" in done.stderr
    done = profile(job, "--json", "--", "no-such-command")
    assert sorted(json.loads(done.stdout)) == ["error", "exit_code", "hint", "profile"]


@pytest.mark.parametrize("number", [INTERRUPT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_is_forwarded_once_to_the_command(job, number):
    process = job.forebay_starts("profile", "--", "sh", "-c", COUNTING)
    wait_until((job.directory / "running").exists)
    process.send_signal(number)
    wait_until((job.directory / "got").exists)
    (job.directory / "go").touch()
    assert finished(process).returncode == 5
    assert (job.directory / "got").read_text() == f"{signal.Signals(number).name[3:]}\n"
    assert job.record()["outcome"]["exit_code"] == 5


def test_ctrl_c_at_the_terminal_reaches_the_command_once(job):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(job.directory)
        os.execve(job.forebay, [str(job.forebay), "profile", "--", "sh", "-c", COUNTING], job.environment())
    try:
        wait_until((job.directory / "running").exists)
        os.write(terminal, b"\x03")
        wait_until((job.directory / "got").exists)
        (job.directory / "go").touch()
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 5
    assert (job.directory / "got").read_text() == "INT\n"


def test_command_ended_by_a_signal_is_recorded(job):
    process = job.forebay_starts("profile", "--", "sh", "-c", "touch running; exec sleep 300")
    status, _ = job.stop_when(process, (job.directory / "running").exists, INTERRUPT)
    assert status == 130 and job.record()["outcome"]["job_status"] == 130


def test_script_runs_with_a_variable_that_is_not_utf8(job):
    job.script('printf %s "$ODD" | od -An -tx1')
    done = profile(job, "--", "sh", "job.sh", ODD=os.fsdecode(b"\xff"))
    assert (done.returncode, done.stdout.strip()) == (0, "ff"), done.stderr


def test_time_limit_ends_all_processes_of_the_command(job):
    done = profile(job, "--time", "0:01", "--", "sh", "-c", "(trap '' TERM; exec sleep 300) & echo $! > pid; wait")
    assert done.returncode == 124 and "its time limit was reached" in done.stderr
    assert job.record()["outcome"]["exit_code"] == 124
    assert not pathlib.Path("/proc", (job.directory / "pid").read_text().strip()).exists()


def test_background_processes_of_the_command_are_not_ended(job):
    done = profile(job, "--", "sh", "-c", "sleep 300 > /dev/null 2>&1 & echo $!")
    pid = int(done.stdout)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00300\x00")
    os.kill(pid, KILL)


def test_killed_profile_leaves_a_record_that_clean_completes(job):
    hold = "echo $$ > made; mv made running; until [ -e go ]; do sleep 0.01; done"
    process = job.forebay_starts("profile", "--", "sh", "-c", hold)
    job.stop_when(process, (job.directory / "running").exists, KILL)
    (job.directory / "go").touch()
    program = (job.directory / "running").read_text().strip()
    wait_until(lambda: has_ended(program))  # or it would wait for ever in a directory that is gone
    assert (job.record()["state"], job.record()["killed"]) == ("running", False)
    assert job.command("clean").returncode == 0
    assert (job.record()["state"], job.record()["killed"]) == ("ended", True)


def test_command_runs_without_a_directory_for_its_record(job):
    if os.getuid() == 0:
        job.as_nobody()
    job.state.chmod(0o500)
    job.temporary.chmod(0o500)
    done = profile(job, "--", "sh", "-c", 'echo "ran${LD_PRELOAD-}"; exit 4')
    assert (done.returncode, done.stdout) == (4, "ran\n") and done.stderr.count(
        "warning: the job's I/O is not recorded"
    ) == 1
    job.temporary.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "verb"), [(["report"], "report"), (["why"], "why"), (["profile", "export"], "export")]
)
def test_verbs_in_python_get_their_arguments_and_the_state_directory(build, words, verb):
    with reachable(build) as job:
        top = job.directory.parent / "prefix"
        shutil.copytree(build / "lib" / "forebay", top / "lib" / "forebay")
        (top / "bin").mkdir()
        job.forebay = pathlib.Path(shutil.copy(build / "bin" / "forebay", top / "bin"))
        done = job.command(*words, "--help", PATH="/usr/bin:/bin")
        assert done.returncode == 127 and "forebay-py" in done.stderr and "hint: " in done.stderr
        listing = '#!/bin/sh\nfor word in "$@" "$FOREBAY_STATE" "$FOREBAY_LIBRARY"; do echo "$word"; done; exit 3\n'
        (top / "bin" / "forebay-py").write_text(listing)
        (top / "bin" / "forebay-py").chmod(0o755)
        done = job.command(*words, "--help", "a b", "-x", "--", "--json")
        assert (done.returncode, done.stderr) == (3, "")
        assert done.stdout.splitlines() == [
            verb,
            "--help",
            "a b",
            "-x",
            "--",
            "--json",
            str(job.state),
            str(top / "lib" / "forebay"),
        ]


def test_state_directory_is_the_same_as_that_of_a_run(build, job):
    home = job.directory.parent / "home"
    (home / ".local" / "state" / "forebay").mkdir(parents=True)
    kept = {name: value for name, value in job.environment().items() if name not in ("FOREBAY_STATE", "XDG_STATE_HOME")}
    subprocess.run([job.forebay, "profile", "--", "true"], env=kept | {"HOME": str(home)}, check=True)
    assert len(list((home / ".local" / "state" / "forebay" / PROFILES).iterdir())) == 1
    findings = subprocess.run(
        [job.forebay, "doctor", "--json"], env=kept | {"HOME": str(home)}, capture_output=True, text=True
    )
    (recording,) = [finding for finding in json.loads(findings.stdout) if finding["id"] == "recording"]
    assert (
        recording["state"] == "ok"
        and "1 record(s)" in recording["found"]
        and f"{home}/.local/state/forebay/{PROFILES}" in recording["found"]
    )


def test_list_of_verbs_contains_those_in_python(job):
    listed = job.command("--help").stdout
    assert all(f"\n  {verb} " in listed for verb in ("profile", "report", "why"))
