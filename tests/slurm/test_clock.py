"""Safe before the clock stops: what Forebay does about the end that a real Slurm sets."""

import os
import re

import pytest
from support.slow_model import MODEL
from support.slurm_batch import DW, STAGE_OUT

# Slurm's clock does not wait for a test that others slow down.
pytestmark = pytest.mark.alone

# Forebay begins when the test has said when the job ends.
BEGIN = (
    '[ -n "${DW_JOB_STRIPED-}" ] || { touch ready; until [ -e go ]; do sleep 0.05; done; exec forebay run %s "$0"; }'
)
# All at once, so that Forebay never sees a part of it.
WRITE = """new=${DW_JOB_STRIPED}new; mkdir $new; for i in %s; do head -c %s /dev/urandom >$new/$i; done
mv $new ${DW_JOB_STRIPED}out; touch wrote"""
WAIT = "while :; do sleep 0.05; done"
SLOW_RATE = "--drain-rate 1MB --drain-margin 0:02"


def begins(batch, options, body, left_s, *directives):
    """A job whose time is up after so many seconds."""
    batch.script(BEGIN % options + "\n" + body, DW, STAGE_OUT, *directives)
    job = batch.submit("--nodelist=n2")
    batch.wait_for_file("ready")
    # Slurm's limits are minutes; an end that is set is kept to the second.
    batch.run("scontrol", "update", f"JobId={job}", f"EndTime=now+{left_s}")
    (batch.directory / "go").touch()
    return job


def listed(batch):
    (path,) = batch.state.glob("*@n2.FILES-NOT-SAFE")
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return {os.path.basename(source): (int(size), source, target) for size, source, target, _ in lines}


def test_final_stage_out_starts_in_time_and_everything_arrives(users):
    job = begins(users, SLOW_RATE, WRITE % ("1 2 3", 1000000) + "\n" + WAIT, 20)
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "124:0"
    complained = users.stderr_text()
    assert "not safe yet: stage-out takes about 3 seconds" in complained
    assert "the job is ended now, so that 2.86 MiB in 3 files can be staged out" in complained
    assert "CANCELLED" not in complained and "TIME LIMIT" not in complained
    assert users.arrived() == ["1", "2", "3"]
    assert users.leftovers() == [] and users.status("n2") == []


@pytest.mark.soak
@pytest.mark.long
def test_extended_time_limit_does_not_end_the_job(users):
    body = WRITE % ("1", 1000000) + "\nuntil [ -e done ]; do sleep 0.05; done"
    job = begins(users, SLOW_RATE, body, 60)  # of which a slow machine may need half before the limit is extended
    users.wait_for_file("wrote")
    users.cluster.run(["scontrol", "update", f"JobId={job}", "TimeLimit=60"])  # as the operator
    users.cluster.wait(lambda: "ends the job later" in users.stderr_text(), users.stderr_text)
    (users.directory / "done").touch()
    assert users.wait(job) == "COMPLETED", users.stderr_text()
    assert users.arrived() == ["1"]


def test_application_can_write_its_last_checkpoint(users):
    """A process that does not catch the signal is not hurt by it."""
    trap = "trap 'echo last >${DW_JOB_STRIPED}out/last; exit 7' USR1\nsleep 300 &\n"
    job = begins(users, f"{SLOW_RATE} --signal-before USR1@5", trap + WRITE % ("1", 1000000) + "\n" + WAIT, 22)
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "7:0", users.stderr_text()
    # The shell, and what it has just forked and is no `sleep` yet.
    assert re.search(r"signal 10 sent to [12] of its processes", users.stderr_text()), users.stderr_text()
    assert users.arrived() == ["1", "last"]


def test_signal_of_slurm_to_the_batch_shell_reaches_the_job(users):
    """As `#SBATCH --signal=B:USR1@60` does; Forebay is in the shell's place."""
    trap = "trap 'echo last >${DW_JOB_STRIPED}out/last; exit 7' USR1\n"
    job = begins(users, "", trap + WRITE % ("1", 1000) + "\n" + WAIT, 3000)
    users.wait_for_file("wrote")
    users.run("scancel", "--batch", "--signal=USR1", job)
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "7:0", users.stderr_text()
    assert users.arrived() == ["1", "last"]


def test_job_without_deadline_is_not_ended(users):
    job = begins(users, "--no-deadline", WRITE % ("1", 1000000) + "\nsleep 3", 5)
    assert users.wait(job) == "COMPLETED", users.stderr_text()
    assert users.arrived() == ["1"] and "safe" not in users.stderr_text()


def test_files_beyond_the_time_are_named_and_can_be_staged_out_later(users):
    """On an emulated file system of 20 MB/s; Slurm wants the job to end while it is staged out."""
    (users.directory / "slow.toml").write_text(MODEL)
    names = "1 2 3 4 5 6 7 8"
    job = begins(users, "--drain-rate 1MB --pfs-model slow.toml", WRITE % (names, 16 << 20) + "\n" + WAIT, 12)
    users.cluster.wait(lambda: "the job is ended now" in users.stderr_text(), "the job was not ended")
    users.cluster.wait(lambda: any(name in names for name in users.arrived()), "nothing arrived")
    assert "not all of it will fit" in users.stderr_text()
    users.run("scancel", job)
    users.cluster.wait(lambda: users.status("n2")[0]["state"] == "kept", "it still stages out")
    arrived = {name for name in users.arrived() if name in names}
    missing = set(names.split()) - arrived
    assert arrived and missing, "stopped half way"
    named = listed(users)
    assert set(named) >= missing
    source = named[missing.pop()][1]
    assert source.startswith("/mnt/nvme/forebay-") and "not safe: /mnt/nvme/forebay-" in users.stderr_text()
    (shown,) = users.status("n2")
    assert (shown["not_safe_files"], shown["undrained"]) == (len(named), True)
    assert users.status("n3")[0]["state"] == "elsewhere"
    users.run("srun", "-w", "n2", "forebay", "clean")
    assert [name for name in users.arrived() if name in names] == names.split()
    assert users.leftovers() == [] and users.status("n2") == [] and not list(users.state.glob("*NOT-SAFE"))


def test_scancel_allows_stage_out_within_killwait(users):
    """Also for a job that does not end by itself."""
    body = "trap '' TERM\n" + WRITE % ("1 2", 1000000) + "\n" + WAIT
    job = begins(users, "", body, 3000)
    users.wait_for_file("wrote")
    users.run("scancel", job)
    assert users.wait(job) == "CANCELLED"
    users.cluster.wait(lambda: users.arrived() == ["1", "2"], users.stderr_text())
    users.cluster.wait(lambda: users.leftovers() == [], "the allocation stayed")


def test_sigterm_that_is_repeated_does_not_stop_the_stage_out(users):
    (users.directory / "slow.toml").write_text(MODEL)
    job = begins(users, "--pfs-model slow.toml", WRITE % ("1 2", 16 << 20) + "\n" + WAIT, 3000)
    users.wait_for_file("wrote")
    for _ in range(2):
        users.run("scancel", "--batch", "--signal=TERM", job)
        users.cluster.wait(lambda: "ended with status" in users.stderr_text(), "the job goes on")
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "143:0", users.stderr_text()
    assert users.arrived() == ["1", "2"] and users.leftovers() == []


def test_kill_during_stage_out_leaves_a_list_of_unsaved_files(users):
    (users.directory / "slow.toml").write_text(MODEL)
    job = begins(users, "--pfs-model slow.toml", WRITE % ("1 2 3", 64 << 20) + "\n" + WAIT, 3000)
    users.wait_for_file("wrote")
    users.run("scancel", job)
    users.wait(job)
    users.cluster.wait(lambda: users.status("n2")[0]["state"] == "left", "it was not killed")
    named = listed(users)
    assert sorted(named) == ["1", "2", "3"]
    assert [size for size, _, _ in named.values()] == [64 << 20] * 3
    assert not {"1", "2", "3"} & set(users.arrived())
    users.run("srun", "-w", "n2", "forebay", "clean")
    assert users.arrived() == ["1", "2", "3"] and users.leftovers() == []
