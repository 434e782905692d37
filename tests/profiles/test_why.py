"""`forebay why` on records of all ends that a job can have."""

import json
import os
import signal
import subprocess
import sys

import pytest

from support import record_data
from support.in_process import in_process


@pytest.fixture
def why(build, tmp_path):
    """Runs the command on the records in tmp_path."""

    def run(*arguments, status=0):
        variables = {"FOREBAY_STATE": str(tmp_path)}
        done = in_process(build / "bin" / "forebay", ["why", *arguments], tmp_path, variables)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


def ended(status, exit_code=None, **outcome):
    return {"job_status": status, "job_s": 30.0, "exit_code": status if exit_code is None else exit_code} | outcome


def next_step(said):
    (line,) = [line for line in said.splitlines() if line.startswith("Next: ")]
    return line.removeprefix("Next: ")


def test_missing_record_is_reported(why):
    said = why(status=1)
    assert said.startswith("error: no job has been recorded yet") and "hint: `forebay run" in said


def test_refusal_is_explained(why, tmp_path):
    error, hint = ("wrf.sh: line 3: capacity=1XiB is no size", "write for example capacity=10GiB")
    record_data.record(tmp_path, record_data.job_json(outcome=None, error=error, hint=hint))
    said = why()
    assert error in said and "was not started" in said and next_step(said) == hint
    # as the errors of directives come: with the hint inside
    record_data.record(tmp_path, record_data.job_json("2", outcome=None, error=f"{error}\n  hint: {hint}"))
    assert next_step(why("2")) == hint


def test_all_directive_errors_are_reported_with_their_hints(why, tmp_path):
    said_by_run = (
        "l.sh: line 2: type=cache is refused\n  hint: write type=scratch\n"
        "l.sh: line 3: swap is refused\n  hint: remove the line, and ask for nodes with more memory\n"
        "l.sh: line 4: type=fil is not known\n  hint: write type=file or directory or list"
    )
    record_data.record(tmp_path, record_data.job_json(outcome=None, error=said_by_run))
    said = why()
    assert (
        "was not started: 3 errors. (1) l.sh: line 2: type=cache is refused (hint: write type=scratch)."
        " (2) l.sh: line 3: swap is refused (hint: remove the line, and ask for nodes with more memory)."
        " (3) l.sh: line 4: type=fil is not known (hint: write type=file or directory or list).\n"
    ) in said
    assert next_step(said) == "correct all of them, and start it again"
    assert "?" not in said and "\\n" not in said


def test_killed_process_is_a_failure_of_a_job_that_failed_only(why, tmp_path):
    killed = record_data.step(finished=False, wall_s=None, mpi=None, ranks=1)
    record_data.record(tmp_path, record_data.job_json("1", outcome=ended(0)), killed, killed)
    record_data.record(tmp_path, record_data.job_json("2", outcome=ended(1)), killed, killed)
    assert "succeeded" in why("1") and "wrf.exe" not in why("1")
    assert why("2").count("wrf.exe was killed.") == 1


@pytest.mark.parametrize(
    "status, name", [(137, "SIGKILL"), (139, "SIGSEGV"), (143, "SIGTERM"), (128 + 40, "signal 40")]
)
def test_end_by_a_signal_is_explained(why, tmp_path, status, name):
    record_data.record(
        tmp_path, record_data.job_json(outcome=ended(status)), record_data.step(finished=False, wall_s=None)
    )
    said = why()
    assert f"was ended by {name}" in said and "wrf.exe ended without MPI_Finalize" in said
    assert ("memory ran out" in said) == (status - 128 == signal.SIGKILL)


def test_job_ended_before_the_deadline_is_explained(why, tmp_path):
    deadline = {"end_unix_s": 1.8e9, "told_by": "--deadline", "signalled": None, "ended_job": True}
    record_data.record(tmp_path, record_data.job_json(outcome=ended(124, 122, deadline=deadline)))
    said = why()
    assert "was ended by Forebay after 30 s, before the end that --deadline tells" in said, said
    assert "time limit" not in said and "signal" not in said


def test_signal_that_the_deadline_sent_is_named_with_its_reason(why, tmp_path):
    deadline = {"end_unix_s": 1.8e9, "told_by": "--deadline", "signalled": 1, "ended_job": False}
    record_data.record(tmp_path, record_data.job_json(outcome=ended(128 + signal.SIGUSR1, deadline=deadline)))
    said = why()
    assert "SIGUSR1" in said and "does not handle it" in said and "signal 10" not in said, said


def test_status_beyond_all_signals_is_no_signal(why, tmp_path):
    record_data.record(tmp_path, record_data.job_json(outcome=ended(255)))
    assert "ended with status 255." in why() and "signal" not in why()


def test_failed_program_in_a_script_that_continued_is_named(why, tmp_path):
    for number, more in enumerate([{}, {"aborted": {"rank": 1, "code": 0}}]):
        record_data.record(
            tmp_path, record_data.job_json(str(number)), record_data.step(finished=False, wall_s=None, **more)
        )
        said = why(str(number))
        assert "ended with status 0, but some of its programs did not exit properly" in said
        assert "succeeded. I/O" not in said and "forebay why" not in said
        assert next_step(said).startswith("look at the job's own output")
    assert "Rank 1 of wrf.exe called MPI_Abort with code 0" in said


def test_damaged_record_is_reported(why, tmp_path):
    directory = record_data.record(tmp_path, record_data.job_json("5"))
    (directory / "job.json").write_text("{")
    assert "How job 5 ended is not known" in why("5")


def test_outer_of_two_nested_jobs_is_the_last(why, tmp_path):
    record_data.record(tmp_path, record_data.job_json("1", outcome=ended(3)))
    record_data.record(tmp_path, record_data.job_json("2", started_unix_s=1700000010.0, ended_unix_s=1700000020.0))
    assert "Job 1 (wrf.sh) ended with status 3" in why()


def test_time_limit_is_explained(why, tmp_path):
    record_data.record(tmp_path, record_data.job_json(outcome=ended(124)))
    assert "ended at its time limit after 30 s" in why()


def test_failed_and_aborted_programs_are_explained(why, tmp_path):
    aborted = record_data.step(finished=False, wall_s=None, aborted={"rank": 3, "code": 17})
    record_data.record(tmp_path, record_data.job_json(outcome=ended(17)), aborted)
    said = why()
    assert "ended with status 17" in said and "Rank 3 of wrf.exe called MPI_Abort with code 17" in said


def test_undelivered_data_are_named(why, tmp_path):
    stage_out = {
        "files": 1,
        "bytes": 1,
        "seconds": 0.1,
        "failures": [["/bb/a", "No space left on device"], ["/bb/b", "x"]],
    }
    outcome = ended(0, 123, stage_out=stage_out, kept="/mnt/forebay/1", undelivered=True)
    record_data.record(tmp_path, record_data.job_json("1700000000001", outcome=outcome))
    assert "or discarded it since" in why() and "Next: " not in why()
    left_behind(tmp_path, "1700000000001")
    said = why()
    assert "/bb/a: No space left on device (and 1 more)" in said
    assert "the data are in /mnt/forebay/1" in said
    assert next_step(said) == "forebay clean 1700000000001"


def left_behind(state, identity):
    """What a job has as long as it holds anything."""
    (state / f"{identity}-77@here.json").write_text("{}")


def test_killed_running_and_cleaned_jobs_are_distinguished(why, tmp_path):
    running = record_data.job_json(
        "1", state="running", ended_unix_s=None, outcome=None, process=record_data.own_process()
    )
    record_data.record(tmp_path, running, record_data.step(finished=False, wall_s=None))
    record_data.record(tmp_path, running | {"id": "5"}, record_data.step(), record_data.step(finished=False))
    assert "is still running" in why("5") and "nothing to gain" not in why("5")
    said = why("1")
    assert "is still running" in said and "wrf.exe is running" in said
    killed = running | {"id": "2", "process": running["process"] | {"start_ticks": 1}}
    record_data.record(tmp_path, killed, record_data.step(finished=False, wall_s=None))
    assert "was killed" in why("2") and "forebay clean" not in why("2")
    left_behind(tmp_path, "2")
    assert next_step(why("2")) == "forebay clean 2" and "is running, or ended" in why("2")
    elsewhere = running | {"id": "4", "process": running["process"] | {"host": "n7"}}
    record_data.record(tmp_path, elsewhere | {"host": "n7"})
    said = why("4")
    assert "still runs on n7, or was killed there" in said
    assert next_step(said) == "forebay status on n7"
    record_data.record(tmp_path, running | {"id": "3", "state": "ended", "killed": True})
    assert "has been cleaned up" in why("3") and "forebay clean" not in why("3")


def test_uninspected_leftovers_are_not_called_running(why, tmp_path):
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    process = record_data.process(child.pid)
    running = record_data.job_json(state="running", outcome=None, process=process)
    record_data.record(tmp_path, running)
    assert "was killed" in why()
    child.wait()


def test_successful_job_is_explained_with_what_it_waited_for(why, tmp_path):
    write = {"calls": {"collective": 20}, "asked_bytes": 22118400, "system_calls": 23040, "system_bytes": 22118400}
    seconds = {"open": 0.0, "close": 0.0, "metadata": 0.0, "sync": 0.0, "write": {"calls": 40.0, "data": 39.0}}
    file = {"path": "/s/d.dat", "layer": "mpiio", "ranks": 4, "opens": 4, "write": write}
    file |= {"seconds": {"sum": seconds, "slowest": seconds}}
    record_data.record(
        tmp_path, record_data.job_json(), record_data.step(file, ranks=4, io_s={"sum": 160.0, "slowest": 40.0})
    )
    said = why()
    assert "succeeded. I/O took 40 % of the run time" in said and "23,040 system calls of 960 B" in said
    assert next_step(said) == "export MPICH_MPIIO_HINTS='d.dat:romio_cb_write=enable'"


def test_why_prints_json_and_reads_other_sources(why, tmp_path):
    found = json.loads(why("--json", str(record_data.LOGS / "mpiio_shared_cbdisable.darshan")))
    assert found["state"] == "ended" and "not buffered" in found["paragraph"]
    assert found["next_step"].startswith("export MPICH_MPIIO_HINTS=")


@pytest.mark.soak
@pytest.mark.parametrize("verb", ["why", "report"])
def test_why_errors_as_json_have_the_common_form(job, verb):
    """`tune` fails in the same place; each says on standard error what it always says."""
    done = job.command(verb, "--json", "nosuch")
    told = json.loads(done.stdout)
    assert list(told) == list(json.loads(job.command("run", "--json", "nosuch.sh").stdout))
    assert (told["profile"], told["exit_code"], done.returncode) == (None, 1, 1)
    assert done.stderr == f"error: {told['error']}\nhint: {told['hint']}\n"
    assert job.command(verb, "nosuch").stdout == ""


@pytest.mark.soak
@pytest.mark.parametrize("words", [["why"], ["report"], ["tune"], ["profile", "export"]])
def test_short_option_h_prints_help(job, words):
    short, long = (job.command(*words, option) for option in ("-h", "--help"))
    assert short.returncode == 0, short.stderr
    assert short.stdout == long.stdout and "-h, --help" in short.stdout


def test_why_of_an_unreadable_source_is_an_error(why, tmp_path):
    (tmp_path / "x.darshan").touch()
    assert "empty file" in why(str(tmp_path / "x.darshan"), status=1)
    assert why("--no-such-option", status=2).startswith("Usage: forebay why ")


def test_help_has_an_example_and_loads_nothing_heavy():
    program = (
        "import sys\nfrom forebay.cli import main\n"
        "try: main(['why', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'pandas', 'matplotlib', 'darshan'} & set(sys.modules), 'heavy'\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "forebay why 4711" in done.stdout


def test_nodes_of_an_allocation_and_their_engine_are_named(why, tmp_path):
    nodes = {"engine": "ceph", "names": ["n1", "n2"], "failed": None, "redundancy": 2, "share_bytes": 4096}
    record_data.record(tmp_path, record_data.job_json(outcome=ended(0, nodes=nodes)))
    assert "Nodes: n1, n2; engine ceph, 2 copies." in why()
    allocation = {"engine": "ceph", "nodes": ["n1", "n2"], "failed": None, "redundancy": 2, "share_bytes": 4096}
    assert json.loads(why("--json"))["allocation"] == allocation
    # As older versions wrote it, of an engine that failed.
    nodes = {"engine": "ceph", "names": ["n1", "n2"], "failed": "node n2: n2.storage ended"}
    record_data.record(tmp_path, record_data.job_json("1700000000002", outcome=ended(1, nodes=nodes)))
    said = why("1700000000002")
    assert said.startswith("The engine ceph over n1, n2 failed: node n2: n2.storage ended. Job 1700000000002")
    assert "Nodes: n1, n2; engine ceph, one copy." in said
