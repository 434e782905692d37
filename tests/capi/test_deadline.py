"""The end of the job's time, where only its programs ask for something to be staged out."""

import json

SOON = ("--json", "--deadline", "0:12", "--drain-margin", "0:01")


def test_deferred_requests_are_staged_out_before_the_job_end(asking):
    asking.script("echo result > $S/f; ask out $S/f pfs/f end > said; exec sleep 300")
    done = asking.job.run(*SOON)
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"]) == (124, 124), done.stderr
    assert "7 B in 1 file" in account["deadline"]["warnings"][-1] and account["deadline"]["ended_job"]
    assert (asking.pfs / "f").read_text() == "result\n" and account["not_safe"] is None
    asking.job.leaves_nothing()


def test_requested_files_that_did_not_arrive_are_named(asking):
    asking.script("echo result > $S/f; ask out $S/f pfs/f end > said; mkdir pfs/f; exec sleep 300")
    done = asking.job.run(*SOON)
    account = json.loads(done.stdout)
    assert (done.returncode, account["not_safe"]["files"], account["not_safe"]["bytes"]) == (122, 1, 7), done.stderr
    (line,) = [line for line in open(account["not_safe"]["list"]) if not line.startswith("#")]
    size, source, target, why = line.rstrip("\n").split("\t")
    assert (size, target) == ("7", str(asking.pfs / "f")) and "a directory stands at its place" in why
