"""Real jobs tuned on an emulated file system; and what the made-up ones share with them."""

import json
import os
import subprocess

import pytest

from support.job import KILL
from support.mpi import LAUNCHING
from support.tuner import DW, EMULATED, WITHOUT_BUFFERING, hanging_after
from support.waiting import wait_until


@pytest.mark.alone  # a gain is a matter of seconds
def test_tune_real_job_finds_a_gain_that_its_counters_show(real_job):
    real_job.btio(before=f"cd '{real_job.directory}'")
    process = real_job.start("--budget", "6", "--seed", "1")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0 and "in place of" in out, (out, err)
    study = real_job.study()
    assert study.verdicts["file-system"].recommended
    assert {run.checked for run in study.runs if run.seconds} == {"verified by the program"}
    assert (study.head.emulated, study.ends[-1].reason) == ("lustre-small", "done")
    assert not (real_job.directory / "out").exists(), "runs are in a copy"

    done = real_job.job.command("run", *EMULATED, "job.tuned.sh", **LAUNCHING)
    assert done.returncode == 0, done.stderr
    by_default = real_job.system_writes(real_job.study_directory / study.runs[0].record)
    assert real_job.system_writes(real_job.job.records()[-1]) < by_default / 4


@pytest.mark.soak
def test_tune_real_job_killed_loses_one_run_and_leaves_nothing(real_job):
    begun = real_job.directory.parent / "begun"
    real_job.btio(before=hanging_after("default", f"mkdir {begun} && sleep 300"), directive=DW)
    process = real_job.start("--on", "burst-buffer", "--budget", "2")
    wait_until(begun.exists, what="the second run", process=process)
    process.send_signal(KILL)
    process.communicate()
    real_job.leaves_no_process()
    before = real_job.runs()
    assert [run.phase for run in before] == ["default"]
    process = real_job.start("--budget", "2")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, (out, err)
    assert real_job.runs()[:1] == before
    assert [run.number for run in real_job.runs()] == [1, 2]
    real_job.leaves_no_process()
    real_job.job.leaves_nothing()


def conversation(directory, program, environment):
    """What a series says when it begins, of a run that is recorded and of one that fails; job.json, step, file."""
    record = directory / "record"
    record.mkdir()
    names = {"directory": directory, "output": directory / "output.txt", "record": record}
    script = {"run": 7, "script": str(directory / "job.sh"), "fresh": True, "trace": True}
    requests = [
        script | {name: str(path) for name, path in names.items()},
        {"run": 8, "command": ["sh", "-c", "exit 3"]},
    ]
    words = [program, "__series", *EMULATED, "job.sh"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=directory, env=environment, stdin=pipe, stdout=pipe, text=True) as series:
        lines = [series.stdout.readline()]
        for request in requests:
            print(json.dumps(request), file=series.stdin, flush=True)
            lines.append(series.stdout.readline())
        series.stdin.close()
    assert series.returncode == 0
    (step,) = record.glob("step-*.json")
    step = json.loads(step.read_text())
    (file,) = [file for file in step.pop("files") if file["layer"] == "mpiio"]
    return [*map(json.loads, lines), json.loads((record / "job.json").read_text()), step, file]


def shape(value):
    """Members and types; None where that tells nothing."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else None
    return None if value is None else float if type(value) is int else type(value)


def is_part(part, whole):
    """Has `whole` each member that `part` has, of the same type?"""
    if part is None or whole is None:
        return True
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and is_part(one, whole[name]) for name, one in part.items()
        )
    return is_part(part[0], whole[0]) if isinstance(part, list) and isinstance(whole, list) else part == whole


def test_fake_series_answers_and_records_like_the_real_one(real_job, request):
    real_job.btio(before="", directive=DW)
    real = conversation(real_job.directory, real_job.job.forebay, real_job.job.environment(**LAUNCHING))
    tuned = request.getfixturevalue("tuned")
    tuned.app(before=WITHOUT_BUFFERING, directive=DW)
    fake = conversation(tuned.directory, os.environ["FOREBAY_PROGRAM"], os.environ)
    real, fake = list(map(shape, real)), list(map(shape, fake))
    for theirs, ours in zip(real, fake, strict=True):
        assert is_part(ours, theirs), (ours, theirs)
    for theirs, ours in zip(real[:3], fake[:3], strict=True):
        assert is_part(theirs, ours), (ours, theirs)
