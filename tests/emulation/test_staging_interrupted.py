"""Staging that is stopped or killed half way: nothing half done under a final name, nothing lost."""

import pytest

from support.job import DW, INTERRUPT, KILL
from support.slow_model import MODEL
from support.trees import named

SIZE = 96 << 20  # five seconds at 20 MB/s, of which only the first part is waited for
ROOMY = DW.replace("64MiB", "512MiB")
STAGE_IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/input"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
CONTENT = bytes(range(256)) * (SIZE // 256)


@pytest.fixture
def slow(job):
    """Options that make the submit directory slow."""
    model = job.directory.parent / "slow.toml"
    model.write_text(MODEL)
    return ["--pfs-model", str(model)]


def half_files(directory):
    return named(directory, "*.part")


def write_out(job):
    job.script(
        f"mkdir $DW_JOB_STRIPED/out; python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * {SIZE // 256})' > $DW_JOB_STRIPED/out/it",
        ROOMY,
        STAGE_OUT,
    )


def test_ctrl_c_during_stage_in_leaves_nothing_and_starts_no_job(job, slow):
    (job.directory / "input").mkdir()
    (job.directory / "input" / "it").write_bytes(CONTENT)
    job.script("touch started", ROOMY, STAGE_IN)
    process = job.start(*slow)
    status, err = job.stop_when(process, lambda: half_files(job.store), INTERRUPT)
    assert status == 125 and "stopped by a signal before the job was started" in err
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_ctrl_c_during_stage_out_keeps_data_and_leaves_no_partial_file(job, slow):
    write_out(job)
    process = job.start(*slow)
    status, err = job.stop_when(process, lambda: half_files(job.directory), INTERRUPT)
    assert status == 123 and "staging was stopped" in err and "nothing was deleted" in err
    assert list((job.directory / "results").iterdir()) == []
    (kept,) = job.allocations()
    assert (kept / "striped" / "out" / "it").read_bytes() == CONTENT


def test_kill_during_stage_out_leaves_no_partial_file_under_a_final_name(job, slow):
    (job.directory / "results").mkdir()
    (job.directory / "results" / "it").write_text("the last good one")
    write_out(job)
    process = job.start(*slow)
    job.stop_when(process, lambda: half_files(job.directory), KILL)
    assert (job.directory / "results" / "it").read_text() == "the last good one"
    (kept,) = job.allocations()
    assert (kept / "striped" / "out" / "it").read_bytes() == CONTENT


def test_kill_during_stage_in_starts_no_job_and_leaves_no_partial_file(job, slow):
    (job.directory / "input").mkdir()
    (job.directory / "input" / "it").write_bytes(CONTENT)
    job.script("touch started", ROOMY, STAGE_IN)
    process = job.start(*slow)
    job.stop_when(process, lambda: half_files(job.store), KILL)
    (kept,) = job.allocations()
    assert not (kept / "striped" / "input" / "it").exists()
    assert not (job.directory / "started").exists()
    assert (job.directory / "input" / "it").read_bytes() == CONTENT
