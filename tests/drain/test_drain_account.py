"""What a drain says has arrived, has: the counts, the failures and the log of a job whose files do not all get there."""

import json

import pytest

from support.drain import WAIT, account, counts, drained  # noqa: F401


def drain_status(job) -> dict:
    return json.loads((job.directory / "status").read_text())


@pytest.mark.parametrize("to", ["", ":to={pfs}"], ids=["stage_out", "to"])
def test_directory_at_the_drain_destination_fails_the_file(drained, to):
    name = "out/a.dat" if to else "a.dat"
    kept = drained.pfs / name / "a.dat"
    kept.parent.mkdir(parents=True)
    kept.write_text("precious\n")
    drained.body(f'echo 1 > a.dat; echo 2 > b.dat; {WAIT} > "$SLURM_SUBMIT_DIR/status" && exit 9', "true")
    done = drained.run("--json", "--drain", "*.dat" + to.format(pfs=drained.pfs))
    assert done.returncode == 123 and "a directory stands at its place" in done.stderr, done.stderr
    assert counts(drain_status(drained), "done", "failed") == [1, 1]
    assert kept.read_text() == "precious\n" and [path.name for path in kept.parent.iterdir()] == ["a.dat"]
    kept.unlink()
    kept.parent.rmdir()
    cleaned = drained.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert (drained.pfs / name).read_text() == "1\n"
    drained.leaves_nothing()


def test_files_of_no_drain_rule_are_not_counted_as_done(drained):
    drained.body(
        "echo taken > a.nc; echo scratch > ../b.nc",
        f'{WAIT} > "$SLURM_SUBMIT_DIR/status"; "$FOREBAY" drain wait > "$SLURM_SUBMIT_DIR/said"',
    )
    done, said = account(drained, "--drain", "*.nc")
    assert counts(drain_status(drained), "enqueued", "done", "not_staged", "bytes") == [1, 1, 1, 6]
    assert "; 1 not drained, since no stage_out line takes them" in (drained.directory / "said").read_text()
    assert "takes" in said and "b.nc, of 1 closed that match: not drained" in said
    assert counts(done["drain"], "done", "not_staged") == [1, 1]


@pytest.mark.parametrize("first", [True, False])
def test_success_of_one_drain_option_does_not_hide_failure_of_another(drained, tmp_path, first):
    drained.body(f'echo 1 > a.nc; {WAIT} > "$SLURM_SUBMIT_DIR/status" && exit 9', "rmdir $PFS/a.nc")
    (drained.pfs / "a.nc").mkdir(parents=True)
    options = ["--drain", "*", "--drain", f"*:to={tmp_path}"]
    account(drained, *(options if first else options[2:] + options[:2]))
    assert counts(drain_status(drained), "enqueued", "done", "failed") == [2, 1, 1]
    assert [path.rsplit("/", 1)[1] for path, _ in drain_status(drained)["failures"]] == ["a.nc"]


def test_file_removed_by_the_job_is_no_drain_failure(drained):
    drained.body(
        f'echo 1 > a.nc; {WAIT} > "$SLURM_SUBMIT_DIR/before" && exit 9',
        f'rm a.nc; {WAIT} > "$SLURM_SUBMIT_DIR/status" || exit 8',
    )
    (drained.pfs / "a.nc").mkdir(parents=True)
    done, said = account(drained, "--drain", "*.nc")
    assert json.loads((drained.directory / "before").read_text())["failures"] != []
    assert counts(drain_status(drained), "failed", "failures") == [1, []]
    assert "did not arrive" not in said and "tries again" not in said
    assert counts(done["drain"], "failed", "failures") == [1, []]


def test_file_staged_out_after_a_failed_drain_is_logged_as_done(job):
    pfs = job.directory.parent / "pfs"
    pfs.mkdir()
    (pfs / "sub").write_text("in the way")
    job.in_memory()
    (job.directory / "job.sh").write_text(
        "#!/bin/bash\n#BSUB -alloc_flags spectral\n"
        "mkdir -p $PERSIST_DIR/sub; echo 1 > $PERSIST_DIR/sub/x; echo 2 > $PERSIST_DIR/y\n"
        "spectral_wait.py && exit 9\nrm $PFS_DIR/sub\n"
    )
    done = job.run(PERSIST_DIR="/mnt/bb/ada", PFS_DIR=str(pfs))
    assert done.returncode == 0, done.stderr
    assert (pfs / "sub" / "x").read_text() == "1\n"
    log = (pfs / "spectral.log").read_text().splitlines()
    named = lambda state: sorted(line.rsplit("/", 1)[1] for line in log if f" {state} " in line)  # noqa: E731
    assert named("ENQUEUE") == named("DEQUEUE") == named("DONE") == ["x", "y"]
