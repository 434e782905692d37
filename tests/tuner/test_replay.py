"""Searching on the recorded I/O: only the default and the confirmation run the job itself."""

import pathlib
import subprocess

import msgspec
import pytest

from forebay.profiles import sources
from forebay.tune import replay
from forebay.tune.errors import TuneError
from support.mpi import LAUNCHING
from support.tuner import EMULATED, WITHOUT_BUFFERING


@pytest.fixture
def traced(tuned, build, monkeypatch):
    """The profile of a traced run of BTIO, and its trace."""
    monkeypatch.setenv("FOREBAY_LIBRARY", str(build / "lib" / "forebay"))
    tuned.btio(before=WITHOUT_BUFFERING)
    done = tuned.job.command("run", "--trace", "job.sh", **LAUNCHING)
    assert done.returncode == 0, done.stderr
    profile = sources.open_path(tuned.job.records()[-1])
    (program,) = [one for one in profile.programs if one.uses_mpi]
    return profile, pathlib.Path(program.trace)


def test_a_search_on_the_recorded_io_confirmed_on_the_job(tuned):
    # Nine tenths of this job are computation, which a replay does without.
    tuned.btio(before=WITHOUT_BUFFERING + "\nsleep 2")
    status, out, err = tuned.tune(
        *EMULATED, "--replay", "--budget", "11", "--seed", "1"
    )
    assert status == 0, err
    assert "its replay" in err, "both times are told"
    runs = tuned.runs()
    real = [run for run in runs if not run.replay]
    replayed = [run for run in runs if run.replay]
    assert {run.phase for run in real} <= {"default", "final"}
    assert replayed[0].phase == "default" and not replayed[0].configuration
    assert len(replayed) > len(real)
    assert (
        "sleep"
        not in (tuned.study_directory / replayed[0].record / "script.sh").read_text()
    )
    by_default = tuned.system_writes(tuned.study_directory / runs[0].record)
    assert tuned.system_writes(tuned.study_directory / replayed[0].record) == by_default
    verdict = tuned.study().verdicts["file-system"]
    if verdict.recommended:
        assert len([run for run in real if run.phase == "final"]) == 4
        assert tuned.tuned.exists()
    assert (
        not (tuned.directory / "out").exists()
        and not (tuned.directory / replay.BELOW).exists()
    )


def test_a_trace_of_another_program_or_of_other_ranks(traced):
    profile, trace = traced
    (program,) = profile.programs[-1:]
    text = replay.script_text(profile, pathlib.Path("/work"), {}, 0.0, [trace])
    assert "-n 4 " in text and str(trace) in text
    for change, message in [
        ({"name": "/bin/other"}, "another program"),
        ({"ranks": 2}, "a trace of 4 ranks"),
    ]:
        other = msgspec.structs.replace(program, **change)
        with pytest.raises(TuneError, match=message):
            replay.script_text(
                msgspec.structs.replace(profile, programs=[other]),
                pathlib.Path("/work"),
                {},
                0.0,
                [trace],
            )
    with pytest.raises(TuneError, match="this is no trace"):
        replay.script_text(profile, pathlib.Path("/work"), {}, 0.0, [trace.parent])
    with pytest.raises(TuneError, match=r"2 trace\(s\) for 1"):
        replay.script_text(profile, pathlib.Path("/work"), {}, 0.0, [trace, trace])


def test_a_trace_of_another_allocation_is_mapped_to_this_one(traced):
    profile, trace = traced
    job = msgspec.structs.replace(profile.job, id="77.1")
    text = replay.script_text(
        msgspec.structs.replace(profile, job=job),
        pathlib.Path("/work"),
        {"DW_JOB_STRIPED": "/mnt/forebay/77/striped/"},
        0.0,
        [trace],
    )
    assert f"--map '{profile.job.directory}'=" in text
    assert f"--map /mnt/forebay/{profile.job.id}/striped=\"${{DW_JOB_STRIPED%/}}/" in text


def test_a_trace_that_is_cut_off_ends_the_search_before_it_begins(tuned, traced):
    _, trace = traced
    last = max(trace.glob("rank-*.trace"))
    last.write_bytes(last.read_bytes()[:-20])
    status, out, err = tuned.tune(
        *EMULATED, "--replay", "--trace", str(trace), "--budget", "8"
    )
    assert status == 1, (out, err)
    assert "cut off" in err and "hint: do without --replay" in err
    assert [run.replay for run in tuned.runs()] == [False, True]
    assert not tuned.tuned.exists()


def test_a_job_that_removes_its_old_output_is_replayed(tuned):
    tuned.btio(before=WITHOUT_BUFFERING)
    (tuned.directory / "out").mkdir()
    (tuned.directory / "out" / "btio.full.out").write_text("of an earlier run")
    status, out, err = tuned.tune(*EMULATED, "--replay", "--budget", "2")
    assert status == 0, (out, err)
    assert [(run.replay, run.status) for run in tuned.runs()] == [
        (False, "ok"),
        (True, "ok"),
    ]


def test_a_trace_at_its_limit_says_which_limit(tuned):
    tuned.btio("--variant simple", before=WITHOUT_BUFFERING, dumps=8)
    status, out, err = tuned.tune(
        *EMULATED, "--replay", "--budget", "2", FOREBAY_MPI_TRACE_BYTES_MAX="4096"
    )
    assert status == 1, (out, err)
    assert (
        "its limit was reached" in err and "hint: FOREBAY_MPI_TRACE_BYTES_MAX" in err
    )


def test_the_script_of_a_replay_is_a_script_of_the_shell(traced):
    profile, _ = traced
    text = replay.script_text(
        profile, pathlib.Path("/a dir"), {"DW_JOB_STRIPED": "/mnt/x/"}, 0.5
    )
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert (
        "--think 0.5" in text and "--map '/a dir'=\"$PWD/forebay-replay/work\"" in text
    )
    assert '--map /mnt/x="${DW_JOB_STRIPED%/}/forebay-replay"' in text
