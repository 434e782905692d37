"""Searching on the recorded I/O: only the default and the confirmation run the job itself."""

import pathlib
import subprocess

import msgspec
import pytest

from forebay.profiles import sources
from forebay.tune.runs import replay
from forebay.tune.job_script import script
from forebay.tune.errors import TuneError
from support.mpi import LAUNCHING
from support.tuner import EMULATED


@pytest.fixture
def traced(tuned):
    """The profile of a traced run, and its trace."""
    tuned.app()
    tuned.tunes("--replay", "--dry-run", "--study", "traced")
    profile = sources.open_path(tuned.directory / "traced" / "runs" / "0001")
    return profile, pathlib.Path(profile.programs[0].trace)


def text_of(profile, *traces, directory="/work", variables=(), think=0.0):
    return replay.script_text(profile, pathlib.Path(directory), dict(variables), think, traces)


@pytest.mark.soak
def test_replay_search_runs_the_job_only_to_confirm(tuned):
    # Nine tenths of this job are computation, which a replay does without.
    tuned.app("--compute 10")
    said = tuned.tunes(*EMULATED, "--replay", "--budget", "11", "--seed", "1")
    assert "its replay" in said, "both times are told"
    runs = tuned.runs()
    real, replayed = [run for run in runs if not run.replay], [run for run in runs if run.replay]
    assert [run.phase for run in real] == ["default", *["final"] * 4]
    assert replayed[0].phase == "default" and not replayed[0].configuration
    assert len(replayed) > len(real)
    text = (tuned.study_directory / replayed[0].record / "script.sh").read_text()
    assert "app --compute" not in text and "forebay-replay" in text
    assert max(run.job_s for run in replayed) < 10 < min(run.job_s for run in real)
    assert tuned.study().verdicts["file-system"].recommended and tuned.tuned.exists()
    assert not (tuned.directory / "out").exists() and not (tuned.directory / replay.BELOW).exists()


def test_replay_refuses_a_trace_of_another_program_or_of_other_ranks(traced):
    profile, trace = traced
    (program,) = profile.programs
    text = text_of(profile, trace)
    assert "-n 8 " in text and str(trace) in text
    for change, message in [({"name": "/bin/other"}, "another program"), ({"ranks": 2}, "a trace of 8 ranks")]:
        other = msgspec.structs.replace(program, **change)
        with pytest.raises(TuneError, match=message):
            text_of(msgspec.structs.replace(profile, programs=[other]), trace)
    with pytest.raises(TuneError, match="this is no trace"):
        text_of(profile, trace.parent)
    with pytest.raises(TuneError, match=r"2 trace\(s\) for 1"):
        text_of(profile, trace, trace)


def test_replay_maps_a_trace_of_another_allocation_to_this_one(traced):
    profile, trace = traced
    job = msgspec.structs.replace(profile.job, id="77.1")
    variables = {"DW_JOB_STRIPED": "/mnt/forebay/77/striped/"}
    text = text_of(msgspec.structs.replace(profile, job=job), trace, variables=variables)
    assert f"--map {profile.job.directory}=" in text
    own = profile.job.id.split(".")[0]
    assert f'--map /mnt/forebay/{own}/striped="${{DW_JOB_STRIPED%/}}/' in text


@pytest.mark.soak
@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        ("the trace is cut off", "leave out --replay"),
        ("the trace lacks 7 call(s): its limit was reached", "FOREBAY_MPI_TRACE_BYTES_MAX"),
    ],
)
def test_refused_replay_ends_the_search_before_it_starts(tuned, traced, refusal, hint):
    _, trace = traced
    (trace / "damage").write_text(f"forebay-replay: rank 3: {refusal}\n")
    err = tuned.refused("--replay", "--trace", str(trace), "--budget", "8", runs=2)
    assert refusal in err and f"hint: {hint}" in err
    assert [run.replay for run in tuned.runs()] == [False, True]


def test_replay_script_is_a_shell_script(traced):
    profile, _ = traced
    text = text_of(profile, directory="/a dir", variables={"DW_JOB_STRIPED": "/mnt/x/"}, think=0.5)
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert "--think 0.5" in text and "--map '/a dir'=\"$PWD/forebay-replay/work\"" in text
    assert '--map /mnt/x="${DW_JOB_STRIPED%/}/forebay-replay"' in text


def test_replay_of_a_real_job_overwrites_its_output_with_the_same_writes(real_job, build, monkeypatch):
    monkeypatch.setenv("FOREBAY_PROGRAM", str(build / "bin" / "forebay"))
    monkeypatch.setenv("FOREBAY_LIBRARY", str(build / "lib" / "forebay"))
    real_job.btio(before="")
    (real_job.directory / "out").mkdir()
    (real_job.directory / "out" / "btio.full.out").write_text("of an earlier run")
    done = real_job.job.command("run", "--trace", "job.sh", **LAUNCHING)
    assert done.returncode == 0, done.stderr
    (record,) = real_job.job.records()
    profile = sources.open_path(record)
    own = {one.variable: one.value for one in script.read(real_job.directory / "job.sh").assignments}
    text = replay.script_text(profile, real_job.directory, {}, 0.0, (), own)
    (real_job.directory / "job.sh").write_text(text)
    for _ in range(2):
        done = real_job.job.command("run", "job.sh", **LAUNCHING)
        assert done.returncode == 0, done.stderr
        (issued,) = replay.issued(done.stdout)
        assert issued.ranks == 4 and issued.io_s > 0
        assert real_job.system_writes(real_job.job.records()[-1]) == real_job.system_writes(record)
    (program,) = [one for one in profile.programs if one.uses_mpi]
    last = max(pathlib.Path(program.trace).glob("rank-*.trace"))
    last.write_bytes(last.read_bytes()[:-20])
    done = real_job.job.command("run", "job.sh", **LAUNCHING)
    assert done.returncode != 0 and "cut off" in replay.refusal(done.stdout + done.stderr)
