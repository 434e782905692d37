"""How fast stage-out is taken to be, before the job's end is reckoned with."""

import json

import pytest

from support.job import DW
from support.slow_model import MODEL

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
STAGE_IN = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
WRITE = "mkdir ${DW_JOB_STRIPED}out; head -c 33554432 /dev/urandom > ${DW_JOB_STRIPED}out/big"
DRAINED = f'{WRITE}; "$FOREBAY_HERE" drain wait'


def account(job, *options, deadline="1:00:00"):
    done = job.run("--json", "--deadline", deadline, *options, FOREBAY_HERE=str(job.forebay))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def drain_rate(status):
    return status["deadline"]["drain_rate_from"], status["deadline"]["drain_bytes_per_s"]


def test_slowest_stage_out_on_record_that_copied_enough_counts(job):
    """What a drain had brought already says nothing, although it all arrived."""
    job.script(DRAINED, DW, STAGE_OUT)
    first = account(job, "--drain", "big")
    assert drain_rate(first) == ("assumed", 100e6)
    moved = first["stage_out"]
    assert (moved["bytes"], moved["unchanged_files"], moved["copied_bytes"]) == (33554432, 1, 0)
    job.script(WRITE, DW, STAGE_OUT)
    second = account(job)
    assert drain_rate(second) == ("assumed", 100e6), "all was unchanged"
    slowest = second["stage_out"]
    assert slowest["copied_bytes"] == 33554432
    third = account(job)
    assert drain_rate(third) == ("earlier-stage-out", slowest["copied_bytes"] / slowest["seconds"])
    slowest = min(slowest, third["stage_out"], key=lambda moved: moved["copied_bytes"] / moved["seconds"])
    job.script("mkdir ${DW_JOB_STRIPED}out; echo little > ${DW_JOB_STRIPED}out/x", DW, STAGE_OUT)
    for _ in range(2):
        status = account(job)
        assert drain_rate(status) == ("earlier-stage-out", slowest["copied_bytes"] / slowest["seconds"])


def test_stage_out_of_more_nodes_does_not_count(job):
    """It was faster than the nodes of this job can be."""
    job.script(WRITE, DW, STAGE_OUT)
    status = account(job)
    (recorded,) = (job.state / "profiles").glob("*/job.json")
    record = json.loads(recorded.read_text())
    assert record["outcome"]["stage_out"]["copied_bytes"] == status["stage_out"]["copied_bytes"] == 33554432
    record["outcome"]["stage_out"]["nodes"] = [{"node": "n2", "files": 1, "bytes": 1}]
    recorded.write_text(json.dumps(record))
    assert drain_rate(account(job)) == ("assumed", 100e6)


@pytest.mark.parametrize("is_hole", [False, True])
def test_half_of_the_stage_in_rate_counts_without_a_record(job, is_hole):
    with (job.directory / "input").open("wb") as file:
        file.truncate(33554432) if is_hole else file.write(bytes(33554432))
    job.script(
        "true",
        DW,
        STAGE_IN,
        STAGE_OUT.replace("directory source=$DW_JOB_STRIPED/out", "file source=$DW_JOB_STRIPED/input"),
    )
    status = account(job)
    copied = status["stage_in"]
    if is_hole:
        assert copied["copied_bytes"] == 0 and drain_rate(status) == ("assumed", 100e6)
    else:
        assert copied["copied_bytes"] == 33554432
        assert drain_rate(status) == ("stage-in", copied["copied_bytes"] / copied["seconds"] / 2)


@pytest.mark.parametrize(
    ("drain", "options", "source"),
    [("big", (), "own-drain"), ("big:rate=100MB/s", (), "assumed"), ("big", ("--drain-rate", "50MB/s"), "given")],
)
def test_own_drain_rate_counts_where_it_is_slower_and_unlimited(job, drain, options, source):
    """The file system takes 20 MB/s; looks are taken every 5 s."""
    (job.directory / "slow.toml").write_text(MODEL)
    job.script(DRAINED + "; sleep 6", DW, STAGE_OUT)
    on_slow = ("--drain-margin", "0:01", "--drain", drain, "--pfs-model", "slow.toml")
    status = account(job, *options, *on_slow, deadline="0:40")
    known, bytes_per_s = drain_rate(status)
    assert (known, status["deadline"]["ended_job"], status["drain"]["done"]) == (source, False, 1)
    if known == "own-drain":
        assert bytes_per_s < 25e6


@pytest.mark.parametrize("options", [(), ("--drain-rate", "50MB/s")])
def test_estimated_rate_does_not_exceed_the_rate_limit(job, options):
    job.script("mkdir ${DW_JOB_STRIPED}out", DW, STAGE_OUT)
    assert drain_rate(account(job, *options, "--stage-rate", "5MB/s")) == ("stage-rate", 5e6)
