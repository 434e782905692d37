"""A trace next to the step of a job's record, from `forebay run --trace` to the replay, with either MPI."""

import json
import re

import pytest

from forebay.profiles import trace as times

from support.job import DW
from support.mpi import PROGRAMS, Mpi, launching
from support.mpi_trace import counters, printed, replayed
from support.strace import few


def program(mpi):
    return mpi.compiled("traced", PROGRAMS / "traced.c")


def started(mpi, ranks, *words) -> list[str]:
    return [f"mpiexec.{mpi.family}", "-n", str(ranks), *map(str, words)]


def steps(job) -> list[tuple[dict, object]]:
    """Of the one record: each step, and the directory of its trace."""
    (record,) = job.records()
    found = []
    for path in sorted(record.glob("step-*.json")):
        step = json.loads(path.read_text())
        assert step["trace"] == path.stem.replace("step", "trace")
        found.append((step, record / step["trace"]))
    assert sorted(record.glob("trace-*")) == [trace for _, trace in found]
    return found


@pytest.mark.soak
def test_profiled_command_is_traced(job, mpi, tmp_path):
    done = job.command(
        "profile", "--trace", "--", *started(mpi, 2, program(mpi), "types", job.directory / "f"), **launching()
    )
    assert done.returncode == 0, done.stderr
    [(step, trace)] = steps(job)
    assert sorted(path.name for path in trace.iterdir()) == ["rank-000000.trace", "rank-000001.trace"]
    assert [file["path"] for file in step["files"]] == [str(job.directory / "f")], "nothing of the record"
    after, summary, _ = replayed(mpi, 2, trace, "--directory", tmp_path / "new")
    assert counters(after, tmp_path / "new") == counters(step)
    assert (summary["skipped"], summary["differences"]) == (0, 0)


@pytest.mark.soak
def test_python_reads_the_times_that_the_replay_prints(job, mpi):
    """Of all calls of the program, those within others left out: they are a part of their time."""
    for case in ("types", "two_handles"):
        words = started(mpi, 2, program(mpi), case, job.directory / case)
        done = job.command("profile", "--trace", "--", *words, **launching())
        assert done.returncode == 0, done.stderr
    for directory in job.records():
        (trace,) = directory.glob("trace-*")
        lines, inks = printed(mpi, trace), set()
        for one in times.read(trace).read:
            # RANK THREAD BEGIN END NAME ...; two more blanks are in front of the name of what is within a call.
            own = [match for line in lines if (match := re.match(rf"{one.rank} \d+ ([\d.]+) ([\d.]+) \w", line))]
            assert not one.damaged and one.calls == len(own) > 0
            spent_s = sum(span.end_s - span.begin_s for span in one.spans)
            assert spent_s == pytest.approx(sum(float(end) - float(begin) for begin, end in (m.groups() for m in own)))
            inks |= {span.activity for span in one.spans}
        assert {"write", "metadata"} <= inks


def test_job_of_two_steps_has_two_traces(job, mpi, tmp_path):
    first, second = (
        " ".join(started(mpi, 2, program(mpi), case, f"$DW_JOB_STRIPED/{case}")) for case in ("split", "two_handles")
    )
    job.script(f"{first} && {second}", DW)
    done = job.run("--trace", **launching())
    assert done.returncode == 0, done.stderr
    found = steps(job)
    assert [step["arguments"][0] for step, _ in found] == ["split", "two_handles"]
    for number, (step, trace) in enumerate(found):
        after, _, _ = replayed(mpi, 2, trace, "--directory", tmp_path / f"new{number}")
        assert counters(after, tmp_path / f"new{number}") == counters(step)


def test_no_trace_without_the_option(job, mpi):
    done = job.command("profile", "--", *started(mpi, 1, program(mpi), "split", job.directory / "f"), **launching())
    assert done.returncode == 0, done.stderr
    (record,) = job.records()
    assert [json.loads(path.read_text())["trace"] for path in record.glob("step-*")] == [None]
    assert list(record.glob("trace-*")) == []


def test_trace_in_another_directory_is_not_named(mpi, tmp_path):
    record, elsewhere = tmp_path / "record", tmp_path / "elsewhere"
    record.mkdir()
    run = mpi.run(1, program(mpi), "split", tmp_path / "f", FOREBAY_PROFILE=record, FOREBAY_MPI_TRACE=elsewhere)
    assert run.returncode == 0, run.stderr
    [step] = record.iterdir()
    assert json.loads(step.read_text())["trace"] is None
    assert printed(mpi, elsewhere)[-1].startswith("0 end finalized")


def test_spawned_processes_have_their_own_trace(openmpi, tmp_path):
    """Open MPI only: Debian's MPICH cannot spawn here."""
    record = tmp_path / "record"
    record.mkdir()
    run = openmpi.run(1, openmpi.observed(), "spawning", tmp_path / "f", FOREBAY_PROFILE=record, FOREBAY_MPI_TRACE="1")
    assert run.returncode == 0, run.stderr
    for path in record.glob("step-*.json"):
        ranks = json.loads(path.read_text())["ranks"]
        assert len(list((record / path.stem.replace("step", "trace")).iterdir())) == ranks
    assert len(list(record.glob("trace-*"))) == 2


@pytest.mark.soak
@pytest.mark.parametrize("case", few("types", "communicators", "nonblocking"))
def test_trace_of_one_mpi_is_replayed_by_the_other(mpi, build, tmp_path, case):
    """What the program asks for is the same. How the MPIs make it system calls is their own."""
    other = Mpi({"openmpi": "mpich", "mpich": "openmpi"}[mpi.family], build)
    trace, new = tmp_path / "trace", tmp_path / "new"
    before, _ = mpi.report(4, program(mpi), case, tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    after, summary, _ = replayed(other, 4, trace, "--directory", new)
    assert (summary["skipped"], summary["differences"]) == (0, 0)
    assert asked(after, new) == asked(before)
    for file in before["files"]:
        copy = new / file["path"][1:]
        assert copy.stat().st_size == (tmp_path / file["path"]).stat().st_size


def asked(report: dict, top: object = "") -> dict:
    """What the program asked MPI-IO for, by file."""
    names = ("calls", "asked_bytes", "asked_sizes", "independent_ranks")
    return {
        file["path"].removeprefix(str(top)): [
            file["opens"],
            *(file[direction][name] for direction in ("write", "read") for name in names),
        ]
        for file in report["files"]
    }
