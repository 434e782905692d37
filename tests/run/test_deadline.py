"""The end of the job, as schedulers tell it that cannot run here: their commands are stand-ins.

tests/slurm has the real thing for Slurm."""

import json
import os
import time

import pytest

from job import DW

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
BODY = "mkdir ${DW_JOB_STRIPED}out; echo x > ${DW_JOB_STRIPED}out/x"


def told(job, environment, **stand_ins):
    """What `forebay run --json` knows of the end, where a scheduler's command says this."""
    commands = job.directory.parent / "commands"
    commands.mkdir()
    for name, says in stand_ins.items():
        (commands / name).write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
        (commands / name).chmod(0o755)
    job.script(BODY, DW, STAGE_OUT)
    done = job.run("--json", PATH=f"{commands}:{os.environ['PATH']}", **environment)
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()
    return json.loads(done.stdout)["deadline"], done.stderr


def left_s(deadline):
    return deadline["end_unix_s"] - time.time()


QSTAT = """Job Id: 7.server
    Job_Name = wrf
    Resource_List.walltime = 01:00:00
    stime = {stime}"""


@pytest.mark.parametrize(
    ("environment", "command", "says", "told_by", "at_most_s"),
    [
        ({"SLURM_JOB_ID": "7"}, "squeue", lambda: str(int(time.time()) + 3600), "squeue", 3600),
        ({"LSB_JOBID": "7"}, "bjobs", lambda: "1:00 L", "bjobs", 3600),
        ({"PBS_JOBID": "7"}, "qstat", lambda: QSTAT.format(stime=time.ctime()), "qstat", 3600),
        ({"PBS_JOBID": "7"}, "qstat", lambda: "    Job_Name = wrf\n    Walltime.Remaining = 3600", "qstat", 3600),
        ({"FLUX_URI": "local:///x"}, "flux", lambda: "3600.5", "flux job timeleft", 3601),
    ],
)
def test_each_scheduler_is_asked_in_its_own_way(job, environment, command, says, told_by, at_most_s):
    deadline, err = told(job, environment, **{command: says()})
    assert (deadline["told_by"], deadline["ended_job"], deadline["warnings"]) == (told_by, False, []), err
    assert 3000 < left_s(deadline) <= at_most_s + 60


def test_what_newer_slurms_have_in_the_environment_needs_no_command(job):
    end = int(time.time()) + 3600
    deadline, _ = told(job, {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(end)}, squeue="must not be asked")
    assert (deadline["told_by"], deadline["end_unix_s"]) == ("SLURM_JOB_END_TIME", end)


@pytest.mark.parametrize(
    ("environment", "command", "says"),
    [
        ({"LSB_JOBID": "7"}, "bjobs", "-"),
        ({"LSB_JOBID": "7"}, "bjobs", "12:00 E"),
        ({"PBS_JOBID": "7"}, "qstat", "    Job_Name = wrf"),
        ({"FLUX_URI": "local:///x"}, "flux", "inf"),
        ({"SLURM_JOB_ID": "7"}, "squeue", "N/A"),
    ],
)
def test_a_job_without_a_limit_has_no_end(job, environment, command, says):
    deadline, err = told(job, environment, **{command: says})
    assert deadline is None and "is not known" not in err


def test_a_scheduler_that_cannot_be_asked_is_named_and_the_job_runs(job):
    deadline, err = told(job, {"LSB_JOBID": "7"}, bjobs="Job <7> is not found")
    assert deadline is None
    assert 'when the job ends is not known (bjobs says "Job <7> is not found")' in err
    assert "--deadline TIME says it" in err


def test_without_a_scheduler_there_is_no_end_but_the_users_own(job):
    deadline, _ = told(job, {})
    assert deadline is None
    done = job.run("--json", "--deadline", "1:00:00", "--drain-rate", "5MB/s")
    deadline = json.loads(done.stdout)["deadline"]
    assert (deadline["told_by"], deadline["drain_bytes_per_s"], deadline["drain_rate_from"]) == (
        "--deadline",
        5e6,
        "given",
    )


def test_a_job_is_ended_for_its_stage_out_and_says_so(job):
    job.script(BODY + "; exec sleep 300", DW, STAGE_OUT)
    done = job.run("--json", "--deadline", "0:12", "--drain-margin", "0:01")
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"], account["exit_code"]) == (124, 124, 124), done.stderr
    assert account["deadline"]["ended_job"] and account["not_safe"] is None
    assert (
        "the job is ended now, so that 2 B in 1 files can be staged out"
        in account["deadline"]["warnings"][-1]
    )
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()


def test_what_could_not_arrive_is_listed_named_and_shown_until_it_has(job):
    strange = "tab\there"
    job.script(BODY + "; echo yy > ${DW_JOB_STRIPED}out/$'tab\\there'; exec sleep 300", DW, STAGE_OUT)
    (job.directory / "results" / strange).mkdir(parents=True)
    done = job.run("--json", "--deadline", "0:12", "--drain-margin", "0:01")
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"], account["not_safe"]["files"]) == (122, 124, 1), (
        done.stderr
    )
    listed = [line for line in open(account["not_safe"]["list"]) if not line.startswith("#")]
    (line,) = listed
    size, source, target = line.rstrip("\n").split("\t")
    assert size == "3" and source.endswith("out/tab\\x09here") and target.endswith("results/tab\\x09here")
    assert f"not safe: {account['not_safe']['first'][0]}" in done.stderr
    (shown,) = json.loads(job.command("status", "--json").stdout)
    assert (shown["not_safe_files"], shown["not_safe_list"]) == (1, account["not_safe"]["list"])
    assert f"1 files are on {shown['host']} only" in job.command("status").stderr
    (job.directory / "results" / strange).rmdir()
    assert job.command("clean").returncode == 0
    assert (job.directory / "results" / strange).read_text() == "yy\n"
    job.leaves_nothing()


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("--signal-before", "USR9@10", "write for example USR1@120"),
        ("--signal-before", "USR1@", "write for example USR1@120"),
        ("--signal-before", "USR1@soon", "write for example USR1@120"),
        ("--drain-rate", "0", "it is zero"),
        ("--deadline", "tomorrow", "write for example 30, 1:30:00 or 1-12"),
    ],
)
def test_what_cannot_be_meant_is_refused(job, option, value, hint):
    job.script("touch ran", DW)
    done = job.run(option, value)
    assert done.returncode == 2 and hint in done.stderr and not (job.directory / "ran").exists()
