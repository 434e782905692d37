"""Parts of a directory that a program asked for as a whole: asked about, revoked, activated, terminated alone."""

import errno
import json
import os

from support.job import KILL
from support.slow_model import MODEL

INVALID = str(-errno.EINVAL)
MADE = "mkdir -p $S/d/e pfs/d; for f in a b e/a e/b; do echo $f > $S/d/$f; done; ask out-directory $S/d pfs/d end\n"


def out(asking):
    top = asking.pfs / "d"
    return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())


def test_revoke_of_file_and_directory_is_refused_the_second_time(asking):
    said = asking.output_lines(
        f"{MADE} ask out $S/d/a - revoke; ask out $S/d/a - revoke; ask query $S/d/a; ask query-directory $S/d\n"
        "ask query-directory $S/d/e; ask out-directory $S/d/e - revoke; ask query-directory $S/d\n"
        "echo > $S/d/e/new; echo > $S/d/later; ask out $S/d/later - revoke; echo > $S/d/f; ask failed $S"
    )
    assert said == ["0", "0", INVALID, INVALID, "0 0 0 3 0", "0 0 0 2 0", "0", "0 0 0 1 0", "0", "0"]
    assert out(asking) == ["b", "f"]
    asking.job.leaves_nothing()


def test_activated_part_is_staged_at_once_and_the_rest_at_the_job_end(asking):
    said = asking.output_lines(
        f"{MADE} ask out $S/d/e/a - revoke; ask out-directory $S/d/e - activate; ask wait-directory $S/d/e\n"
        "ask query-directory $S/d/e; ask out-list - activate $S/d/a; ask wait $S/d/a; ls pfs/d pfs/d/e; rm $S/d/e/b"
    )
    assert said == ["0", "0", "0", "0", "0 1 0 0 0", "0", "0", "pfs/d:", "a", "e", "", "pfs/d/e:", "b"]
    assert out(asking) == ["a", "b", "e/b"]


def test_revoked_file_can_be_requested_again_alone_or_with_its_directory(asking):
    said = asking.output_lines(
        f"{MADE} for f in a e/a; do ask out $S/d/$f - revoke; done; ask out $S/d/a pfs/other end\n"
        "ask query $S/d/a; mkdir pfs/all; ask out-directory $S/d/e pfs/all end; ask query-directory $S/d/e"
    )
    assert said == ["0", "0", "0", "0", "0 0 0 1 0", "0", "0 0 0 2 0"]
    assert out(asking) == ["b", "e/b"]
    assert sorted(os.listdir(asking.pfs / "all")) == ["a", "b"] and (asking.pfs / "other").exists()
    asking.output_lines(f"rm -r pfs/d; {MADE} ask out $S/d/a - revoke; ask out-directory $S/d pfs/d end")
    assert out(asking) == ["a", "b", "e/a", "e/b"]


def test_directory_name_selects_all_requests_below_it(asking):
    said = asking.output_lines(
        "mkdir -p $S/d pfs/d; for f in a b; do echo > $S/d/$f; ask out $S/d/$f pfs/d/$f end; done\n"
        "ask out-directory $S/d - revoke; ask query-directory $S/d"
    )
    assert said == ["0", "0", "0", INVALID]
    assert out(asking) == []


def test_terminate_of_one_file_leaves_its_directory_copy_running(asking):
    (asking.job.directory / "slow.toml").write_text(MODEL)
    said = asking.output_lines(
        "mkdir -p $S/d/e pfs/d; head -c 50M /dev/zero > $S/d/e/large; echo > $S/d/small\n"
        "ask out-directory $S/d pfs/d now; until ls -A pfs/d/e | grep -q part; do sleep 0.01; done\n"
        "ask terminate-directory $S/d/e; ls -A pfs/d/e; ask query $S/d/e/large\n"
        "ask wait-directory $S/d; ask query-directory $S/d; ask failed $S",
        *("--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs), "--json"),
    )
    # With --json the script's own output goes to standard error.
    told = [line for line in asking.err.splitlines() if line[:1] in "-0123456789"]
    assert told == ["0", "0", INVALID, "0", "0 1 0 0 0", "0"]
    assert out(asking) == ["small"]
    requested = json.loads(said[0])["requested"]
    assert (requested["files_out"], requested["failed"]) == (1, 0)
    asking.job.leaves_nothing()


def test_revoked_request_stays_revoked_after_kill_or_failure(asking):
    job = asking.job
    asking.script(f"{MADE} ask out $S/d/a - revoke; ask out-directory $S/d/e - revoke; touch said; sleep 600")
    job.stop_when(job.start(), (job.directory / "said").exists, KILL)
    target = asking.pfs / "d"
    (target / "b").mkdir()  # in the way, until it is removed
    failed = job.command("clean", "--kill")
    assert failed.returncode == 123 and "a directory stands at its place" in failed.stderr, failed.stderr
    (target / "b").rmdir()
    (listed,) = json.loads(job.command("status", "--json").stdout)
    tried = job.command("stage", "retry", listed["job_id"])
    assert tried.returncode == 0, tried.stderr
    assert out(asking) == ["b"]
    job.leaves_nothing()


def test_revoked_file_is_still_staged_out_by_its_directive(asking):
    job, target = asking.job, asking.pfs / "d"
    line = "#DW stage_out type=directory source=$DW_JOB_STRIPED/d destination=%d/pfs/d"
    body = "mkdir -p $S/d pfs/d/a; echo a > $S/d/a; ask out-directory $S/d pfs/d end; ask out $S/d/a - revoke"
    assert asking.output_lines(body, directives=[line], status=123) == ["0", "0"]
    (target / "a").rmdir()
    cleaned = job.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (target / "a").read_text() == "a\n"
    job.leaves_nothing()
