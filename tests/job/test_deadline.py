"""The end of the job, as schedulers tell it that cannot run here: their commands are stand-ins.

tests/slurm has the real thing for Slurm."""

import json
import os
import shlex
import signal
import time

import pytest

from support.job import DW
from support.slow_model import MODEL
from support.waiting import wait_until

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
SOON = ("--json", "--deadline", "0:12", "--drain-margin", "0:01")
BODY = "mkdir ${DW_JOB_STRIPED}out; echo x > ${DW_JOB_STRIPED}out/x"


def deadline_of(job, environment, **stand_ins):
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
        ({"SLURM_JOB_ID": "7"}, "squeue", lambda: f"7 {int(time.time()) + 3600}", "squeue", 3600),
        ({"SLURM_JOB_ID": "7"}, "squeue", lambda: f"8 N/A\n7 {int(time.time()) + 3600}\n71 9", "squeue", 3600),
        ({"LSB_JOBID": "7"}, "bjobs", lambda: "1:00 L", "bjobs", 3600),
        ({"PBS_JOBID": "7"}, "qstat", lambda: QSTAT.format(stime=time.ctime()), "qstat", 3600),
        ({"PBS_JOBID": "7"}, "qstat", lambda: "    Job_Name = wrf\n    Walltime.Remaining = 3600", "qstat", 3600),
        ({"FLUX_URI": "local:///x"}, "flux", lambda: "3600.5", "flux job timeleft", 3601),
    ],
)
def test_end_time_is_queried_from_each_scheduler(job, environment, command, says, told_by, at_most_s):
    deadline, err = deadline_of(job, environment, **{command: says()})
    assert (deadline["told_by"], deadline["ended_job"], deadline["warnings"]) == (told_by, False, []), err
    assert 3000 < left_s(deadline) <= at_most_s + 60


def test_end_time_in_the_slurm_environment_needs_no_command(job):
    end = int(time.time()) + 3600
    deadline, _ = deadline_of(job, {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(end)}, squeue="must not be asked")
    assert (deadline["told_by"], deadline["end_unix_s"]) == ("SLURM_JOB_END_TIME", end)


@pytest.mark.parametrize(
    ("environment", "command", "says"),
    [
        ({"LSB_JOBID": "7"}, "bjobs", "-"),
        ({"LSB_JOBID": "7"}, "bjobs", "12:00 E"),
        ({"PBS_JOBID": "7"}, "qstat", "    Job_Name = wrf"),
        ({"FLUX_URI": "local:///x"}, "flux", "inf"),
        ({"SLURM_JOB_ID": "7"}, "squeue", "7 N/A"),
    ],
)
def test_job_without_a_limit_has_no_end(job, environment, command, says):
    deadline, err = deadline_of(job, environment, **{command: says})
    assert deadline is None and "is not known" not in err


def test_scheduler_without_an_answer_is_named_and_the_job_runs(job):
    deadline, err = deadline_of(job, {"LSB_JOBID": "7"}, bjobs="Job <7> is not found")
    assert deadline is None
    assert 'when the job ends is not known (bjobs says "Job <7> is not found")' in err
    assert "--deadline TIME says it" in err


def test_deadline_without_a_scheduler_is_the_users_option_only(job):
    deadline, _ = deadline_of(job, {})
    assert deadline is None
    done = job.run("--json", "--deadline", "1:00:00", "--drain-rate", "5MB/s")
    deadline = json.loads(done.stdout)["deadline"]
    assert (deadline["told_by"], deadline["drain_bytes_per_s"], deadline["drain_rate_from"]) == (
        "--deadline",
        5e6,
        "given",
    )


def test_job_is_ended_for_its_stage_out_with_a_message(job):
    job.script(BODY + "; exec sleep 300", DW, STAGE_OUT)
    done = job.run(*SOON)
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"], account["exit_code"]) == (124, 124, 124), done.stderr
    assert account["deadline"]["ended_job"] and account["not_safe"] is None
    assert "the job is ended now, so that 2 B in 1 file can be staged out" in account["deadline"]["warnings"][-1]
    assert (job.directory / "results" / "x").exists()
    job.leaves_nothing()


def test_unsaved_files_are_listed_and_shown_until_they_arrive(job):
    strange = "tab\there"
    job.script(BODY + "; echo yy > ${DW_JOB_STRIPED}out/$'tab\\there'; exec sleep 300", DW, STAGE_OUT)
    (job.directory / "results" / strange).mkdir(parents=True)
    done = job.run(*SOON)
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"], account["not_safe"]["files"]) == (122, 124, 1), done.stderr
    (line,) = [line for line in open(account["not_safe"]["list"]) if not line.startswith("#")]
    size, source, target, why = line.rstrip("\n").split("\t")
    assert (
        size == "3"
        and "a directory stands at its place" in why
        and source.endswith("out/tab\\x09here")
        and target.endswith("results/tab\\x09here")
    )
    assert "not safe: " + account["not_safe"]["first"][0].replace("\t", "\\t") in done.stderr
    (shown,) = json.loads(job.command("status", "--json").stdout)
    assert (shown["not_safe_files"], shown["not_safe_list"]) == (1, account["not_safe"]["list"])
    assert f"on {shown['host']} only: 1 file, named in" in job.command("status").stderr
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
def test_contradictory_deadline_options_are_refused(job, option, value, hint):
    job.script("touch ran", DW)
    done = job.run(option, value)
    assert done.returncode == 2 and hint in done.stderr and not (job.directory / "ran").exists()


AT_ONCE = ("--json", "--deadline", "1:00:00")


def listed(account):
    """What the list names: bytes, target and reason by the name of the file."""
    lines = [line.rstrip("\n") for line in open(account["not_safe"]["list"]) if not line.startswith("#")]
    fields = [line.split("\t") for line in lines]
    return {os.path.basename(source): (int(size), target, why) for size, source, target, why in fields}


@pytest.mark.parametrize("late", [False, True])
def test_files_only_drained_are_reported_when_not_safe(job, late):
    """Also where the job's launcher, or its wait command, tells of it first."""
    pfs = job.directory / "pfs"
    (pfs / "x").mkdir(parents=True)
    told = f"export PERSIST_DIR=$DW_JOB_STRIPED PFS_DIR={shlex.quote(str(pfs))}; spectral_wait.py; exec sleep 300"
    job.script("echo x > ${DW_JOB_STRIPED}x; " + (told if late else "exec sleep 300"), DW)
    done = job.run(*SOON, *(["--spectral"] if late else ["--drain", f"*:to={pfs}"]))
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"]) == (122, 124), done.stderr
    assert account["deadline"]["ended_job"] and "2 B in 1 file" in account["deadline"]["warnings"][-1]
    size, target, why = listed(account)["x"]
    assert (size, target) == (2, str(pfs / "x")) and "a directory stands at its place" in why


def test_job_without_stage_out_queries_no_scheduler(job):
    commands = job.directory.parent / "commands"
    commands.mkdir()
    (commands / "squeue").write_text('#!/bin/sh\ntouch "$ASKED"\n')
    (commands / "squeue").chmod(0o755)
    job.script("sleep 1.5; touch ran", DW)
    asked = job.directory / "asked"
    done = job.run("--json", PATH=f"{commands}:{os.environ['PATH']}", SLURM_JOB_ID="7", ASKED=str(asked))
    assert (done.returncode, json.loads(done.stdout)["deadline"]) == (0, None), done.stderr
    assert (job.directory / "ran").exists() and not asked.exists()


def test_job_end_does_not_wait_for_the_scheduler(job):
    """It is asked again because the job would be ended now, and does not answer."""
    commands = job.directory.parent / "commands"
    commands.mkdir()
    (commands / "squeue").write_text(
        "#!/bin/sh\n[ -e first ] || { touch first; echo 7 $(($(date +%s) + 13)); exit; }\necho $$ > asking\n"
        "mv asking asked; exec sleep 600\n"
    )
    (commands / "squeue").chmod(0o755)
    job.script(BODY + "; until [ -s asked ]; do sleep 0.01; done", DW, STAGE_OUT)
    options = ("--json", "--drain-margin", "0:01")
    done = job.run(*options, PATH=f"{commands}:{os.environ['PATH']}", SLURM_JOB_ID="7")
    deadline = json.loads(done.stdout)["deadline"]
    assert (done.returncode, deadline["told_by"], deadline["ended_job"]) == (0, "squeue", False), done.stderr
    # What is not answered for long is taken for unchanged, and that is said.
    assert not any("the job is ended now" in warning for warning in deadline["warnings"]), deadline
    assert not os.path.exists(f"/proc/{(job.directory / 'asked').read_text().strip()}")
    job.leaves_nothing()


def test_unsaved_files_are_named_with_their_reason(job):
    """What cannot be staged ends no job before its time; a directory that cannot be looked into may hold data."""
    job.as_nobody()
    body = BODY + "; mkfifo ${DW_JOB_STRIPED}out/pipe; %s touch ready; "
    absent = "#DW stage_out type=file source=$DW_JOB_STRIPED/absent destination=%d/absent"
    (job.directory / "results").mkdir()
    if job.user is not None:
        os.chown(job.directory / "results", job.user, job.user)
    job.script(body % "" + "sleep 1.5", DW, STAGE_OUT, absent)
    done = job.run(*SOON, "--drain", "x")
    account = json.loads(done.stdout)
    assert (done.returncode, account["deadline"]["ended_job"]) == (123, False), done.stderr
    named = listed(account)
    assert set(named) == {"pipe", "absent"} and account["not_safe"]["files"] == 2
    assert named["pipe"][:2] == (0, "-") and "it is a fifo" in named["pipe"][2]
    assert named["absent"][1].endswith("/absent") and "does not exist" in named["absent"][2]
    shut = "mkdir ${DW_JOB_STRIPED}out/shut; chmod 0 ${DW_JOB_STRIPED}out/shut;"
    job.script(body % shut + "exec sleep 300", DW, STAGE_OUT)
    done = job.run(*SOON, "--drain", "x")
    account = json.loads(done.stdout)
    assert (done.returncode, account["deadline"]["ended_job"]) == (122, True), done.stderr
    assert set(listed(account)) == {"pipe", "shut"} and "Permission denied" in listed(account)["shut"][2]
    (job.directory / "job.sh").unlink()


def test_stage_out_that_cannot_start_names_all_unsaved_files(job):
    damage = 'for record in "$FOREBAY_STATE"/*.json; do echo no journal > "${record%.json}.journal"; done'
    job.script(f"{BODY}; {damage}", DW, STAGE_OUT)
    done = job.run(*AT_ONCE)
    account = json.loads(done.stdout)
    assert done.returncode == 123, done.stderr
    size, target, why = listed(account)["x"]
    assert (size, target) == (2, str(job.directory / "results" / "x")) and "is damaged" in why


def test_file_being_drained_at_the_slurm_signal_is_named_first(job):
    """The copy in hand is stopped: it may take longer than the time there is."""
    (job.directory / "slow.toml").write_text(MODEL)
    big = "mkdir ${DW_JOB_STRIPED}out; head -c 100000000 /dev/zero > ${DW_JOB_STRIPED}out/big; exec sleep 300"
    job.script(big, DW.replace("64MiB", "256MiB"), STAGE_OUT)
    results = job.directory / "results"
    process = job.start(*AT_ONCE, "--drain", "big", "--pfs-model", "slow.toml")

    def lists():
        return list(job.state.glob("*.FILES-NOT-SAFE"))

    wait_until(lambda: list(results.glob(".*.part")), process=process)
    process.send_signal(signal.SIGTERM)
    wait_until(lists, process=process)
    assert "\t" in lists()[0].read_text() and not (results / "big").exists()
    out, err = process.communicate(timeout=300)
    account = json.loads(out)
    drain = account["drain"]
    assert (process.returncode, drain["failures"], drain["done"], drain["waiting"]) == (143, [], 0, 1), err
    assert account["stage_out"]["files"] == 1 and (results / "big").stat().st_size == 100000000
    assert account["not_safe"] is None and lists() == []
    job.leaves_nothing()


def test_job_is_not_ended_for_files_that_can_never_be_staged(job):
    """A destination that has become one in the allocation itself."""
    job.script(
        'ln -s "$DW_JOB_STRIPED" link; mkdir "$DW_JOB_STRIPED/in" "$DW_JOB_STRIPED/out"\n'
        'echo x > "$DW_JOB_STRIPED/out/x"; sleep 3',
        DW,
        STAGE_OUT.replace("results", "link/in"),
    )
    done = job.run(*SOON)
    account = json.loads(done.stdout)
    assert (account["deadline"]["ended_job"], account["job_status"]) == (False, 0), done.stderr
    assert done.returncode == 123 and "it is in the allocation itself" in done.stderr
