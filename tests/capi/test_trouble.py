"""Requests that cannot be carried out: full allocations, missing rights; and where no requests can be made."""

import errno
import json
import os
import shutil
import signal
import subprocess

import pytest

from support.capi import CapiJob
from support.job import KILL
from support.strace import kill_at_each_syscall
from support.slow_model import MODEL
from support.users import reachable
from support.waiting import wait_until

FAILED = "0 0 0 0 1"
FULL, INVALID = str(-errno.ENOSPC), str(-errno.EINVAL)


def test_requests_in_full_allocation_fail(asking):
    asking.job.in_memory()
    (asking.pfs / "large").write_bytes(bytes(1 << 20))
    said = asking.output_lines(
        "echo kept > $S/f; head -c 100M /dev/zero > $S/fill 2> /dev/null; ask out $S/f pfs/f end; ask query $S/f\n"
        "ask in $S/large pfs/large; ask wait $S/large; ask query $S/large; ask failed $S\n"
        "rm $S/fill; ask in $S/large pfs/large; ask wait $S/large; ask query $S/large; ask out $S/f pfs/f end"
    )
    assert said[:5] == [FULL, INVALID, "0", "0", FAILED]
    assert said[5].startswith(f"{errno.ENOSPC} ") and said[5].endswith("/large")
    assert said[6:] == ["0", "0", "0", "0 1 0 0 0", "0"]
    assert (asking.pfs / "f").read_text() == "kept\n"
    asking.job.leaves_nothing()


def test_each_failure_returns_its_errno(asking):
    said = asking.output_lines(
        "mkdir -p $S/d pfs/d/stands; mkfifo $S/d/fifo; echo > $S/d/stands; echo > $S/d/fine\n"
        "ask out-directory $S/d pfs/d now; ask wait-directory $S/d; ask query-directory $S/d; ask failed $S; rm -r $S/d"
    )
    assert said[:3] == ["0", "0", "0 1 0 0 2"]
    told = {line.rsplit("/", 1)[1]: int(line.split()[0]) for line in said[3:5]}
    assert told == {"fifo": errno.EINVAL, "stands": errno.EISDIR}


def test_ordinary_user_gets_permission_errors(build, programs):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with reachable(build) as job:
        job.as_nobody()
        # pytest's own folders, and perhaps the build, are closed to other users.
        reached = shutil.copytree(programs, job.directory.parent / "programs")
        reached.chmod(0o755)
        shutil.copy(build / "lib" / "libdatawarp.so", reached)
        asking = CapiJob(job, reached)
        os.chown(asking.pfs, job.user, job.user)
        secret, closed = asking.pfs / "secret", asking.pfs / "closed"
        secret.write_text("of root")
        secret.chmod(0o600)
        closed.mkdir(mode=0o755)
        said = asking.output_lines(
            f'export LD_LIBRARY_PATH="{reached}"\n'
            "echo mine > $S/f; ask in $S/secret pfs/secret; ask wait $S/secret; ask query $S/secret\n"
            "ask out $S/f pfs/closed/f now; ask wait $S/f; ask query $S/f; ask failed $S\n"
            "ask out $S/f pfs/f now; ask wait $S/f; ask query $S/f; stat -c %U pfs/f"
        )
        denied = f"{errno.EACCES} "
        assert said[:3] == ["0", "0", FAILED] and said[3:6] == ["0", "0", FAILED]
        assert sorted(line[: len(denied)] + line.rsplit("/", 1)[1] for line in said[6:8]) == [
            f"{denied}f",
            f"{denied}secret",
        ]
        assert said[9:] == ["0", "0", "0 1 0 0 0", "nobody"]
        job.leaves_nothing()


def test_request_copies_run_in_the_idle_io_class(asking):
    """The class of I/O of each thread of `forebay run`, as a job sees it while its request is copied."""
    (asking.job.directory / "slow.toml").write_text(MODEL)
    said = asking.output_lines(
        "head -c 50M /dev/zero > $S/f; ask out $S/f pfs/f now; until ls -A pfs | grep -q part; do sleep 0.01; done\n"
        'for thread in /proc/$PPID/task/*; do ionice -p "${thread##*/}"; done | sort -u; ask wait $S/f',
        *("--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs)),
    )
    assert said[0] == said[-1] == "0" and "idle" in said[1:-1] and len(said) > 3, said


ASKS = "echo > ${DW_JOB_STRIPED:-.}/f; ask out ${DW_JOB_STRIPED:-.}/f pfs/f end; ask query ${DW_JOB_STRIPED:-.}/f\n"


def test_series_refuses_every_request_and_keeps_none_pending(asking):
    job = asking.job
    asking.script(ASKS)
    words = [job.forebay, "__series", *job.where, "job.sh"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=job.directory, env=job.environment(FOREBAY_REQUESTS="/outer"), stdin=pipe, stdout=pipe, text=True
    ) as series:
        assert json.loads(series.stdout.readline())["burst_buffer"]
        print(json.dumps({"run": 1, "script": "job.sh", "output": "said"}), file=series.stdin, flush=True)
        answer = json.loads(series.stdout.readline())
        series.stdin.close()
    assert (answer["run"], answer["job_status"], series.returncode) == (1, 0, 0), answer
    assert (job.directory / "said").read_text().splitlines() == [INVALID, INVALID]
    assert list(asking.pfs.iterdir()) == []
    job.leaves_nothing()


def test_compare_carries_out_the_requests_of_all_runs(asking):
    asking.script(f"{{ {ASKS} }} >> said")
    done = asking.job.command("compare", *asking.job.where, "--repeat", "1", "--json", "job.sh")
    assert done.returncode == 0, done.stderr
    said = (asking.job.directory / "said").read_text().splitlines()
    assert said == ["0", "0 0 0 1 0"] * 2
    assert (asking.pfs / "f").exists()


@pytest.mark.parametrize("free_kib", [8, 32, 48])
def test_request_with_little_space_left_is_refused_or_carried_out(asking, free_kib):
    asking.job.in_memory()
    said = asking.output_lines(
        f"echo kept > $S/f; head -c 100M /dev/zero > $S/fill 2> /dev/null; truncate -s -{free_kib}K $S/fill\n"
        "ask out $S/f pfs/f end"
    )
    assert said in ([FULL], ["0"])
    assert (asking.pfs / "f").exists() == (said == ["0"])
    asking.job.leaves_nothing()


def test_delivered_requests_of_a_killed_memory_job_are_not_pending(asking):
    job = asking.job
    job.in_memory()
    asking.script("echo f > $S/f; ask out $S/f pfs/f now; ask wait $S/f; touch waited; sleep 600")
    job.stop_when(job.start(), (job.directory / "waited").exists, KILL)
    (listed,) = json.loads(job.command("status", "--json").stdout)
    assert listed["undrained"] is False
    alone = job.command("clean", "--kill")
    assert alone.returncode == 0 and "is left alone" in alone.stdout + alone.stderr
    assert len(job.keepers()) == 1
    discarded = job.command("clean", "--discard", "--kill")
    assert discarded.returncode == 0 and "open database" not in discarded.stderr
    job.leaves_nothing()


def test_killed_status_leaves_no_copy_of_the_request_database(asking):
    job = asking.job
    job.in_memory()
    asking.script("echo f > $S/f; ask out $S/f pfs/f end; touch asked; sleep 600")
    job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
    assert list(kill_at_each_syscall(job, "unlink", "status"))
    cleaned = job.command("clean", "--kill")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (asking.pfs / "f").read_text() == "f\n"
    job.leaves_nothing()


def test_request_while_the_job_ends_is_refused(asking):
    """By a program that the end of the job does not end, between its call's connection and its question."""
    job = asking.job
    (job.directory / "slow.toml").write_text(MODEL)
    out = job.directory.parent / "out"
    out.mkdir()
    stage_out = f"#DW stage_out type=file source=$DW_JOB_STRIPED/f destination={out}/f"
    asking.script(
        "head -c 50M /dev/zero > $S/f; env > part; mv part there; until [ -e go ]; do sleep 0.01; done", stage_out
    )
    process = job.start("--pfs-model", "slow.toml", "--pfs-root", str(out))
    wait_until((job.directory / "there").exists)
    there = dict(line.split("=", 1) for line in (job.directory / "there").read_text().splitlines() if "=" in line)
    words = [asking.programs / "ask", "out", f"{there['DW_JOB_STRIPED']}/f", asking.pfs / "asked", "end"]
    told = job.directory / "told"
    stopped = ["strace", "-D", "-o", told, "-e", "trace=connect", "-e", "inject=connect:signal=STOP"]
    environment = job.environment(FOREBAY_REQUESTS=there["FOREBAY_REQUESTS"])
    with subprocess.Popen([*stopped, *words], env=environment, stdout=subprocess.PIPE, text=True) as late:
        wait_until(lambda: told.exists() and "stopped by SIGSTOP" in told.read_text())
        (job.directory / "go").touch()
        wait_until(lambda: any(path.suffix == ".part" for path in out.iterdir()))
        late.send_signal(signal.SIGCONT)
        assert late.communicate()[0] == f"{-errno.ESHUTDOWN}\n"
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert [path.name for path in out.iterdir()] == ["f"] and list(asking.pfs.iterdir()) == []
    job.leaves_nothing()


def test_programs_that_wait_do_not_block_other_calls(asking):
    """More of them than any number of threads, and some are killed."""
    sockets = "$(ls -l /proc/$PPID/fd | grep -c socket:)"
    said = asking.output_lines(
        "head -c 5M /dev/zero > $S/f; ask out $S/f pfs/f now; before="
        f"{sockets}; for i in $(seq 300); do ask wait $S/f >> ended & done\n"
        f"until [ {sockets} -ge $((before + 300)) ]; do sleep 0.01; done; ask query $S/f\n"
        "killed=$(jobs -p | head -n 200); kill -9 $killed; wait $killed 2> /dev/null\n"
        f"ask wait $S/f >> ended &\n"
        f"until [ {sockets} -eq $((before + 101)) ]; do sleep 0.01; done; ask terminate $S/f; wait; wc -l < ended",
        *("--stage-rate", "1"),
    )
    assert said == ["0", "0 0 1 0 0", "0", "101"]
    asking.job.leaves_nothing()
