"""What cannot be tuned, and why: told before much is run."""

import pytest

from support.job import INTERRUPT
from support.tuner import EMULATED, WITHOUT_BUFFERING
from support.waiting import wait_until


def refused(tuned, *options: str, runs: int | None = None) -> str:
    """The tuner's error and hint; the run of the job was the only one, or as many as given."""
    status, out, err = tuned.tune(*options)
    assert status == 1, (out, err)
    assert "error: " in err and "Traceback" not in err
    if runs is not None:
        assert len(tuned.runs()) == runs
        assert not runs or tuned.study().ends[-1].reason == "stopped"
    assert not tuned.tuned.exists()
    tuned.leaves_no_process()
    return err


def test_a_script_without_mpi(tuned):
    tuned.script("echo nothing to see")
    assert "ran no MPI program" in refused(tuned, runs=1)


def test_a_job_that_only_computes(tuned):
    tuned.btio(before="sleep 4", points=8, dumps=1)
    status, out, err = tuned.tune("--budget", "3")
    assert status == 0, err
    assert "nothing to gain" in " ".join(out.split())
    assert "I/O is" in tuned.study().verdicts["file-system"].reason
    assert len(tuned.runs()) == 1
    assert not tuned.tuned.exists()


def test_a_default_run_that_fails_shows_what_it_said(tuned):
    tuned.btio(after="echo the mesh is missing >&2; exit 3")
    err = refused(tuned, runs=1)
    assert "status 3" in err and "the mesh is missing" in err and "output.txt" in err
    tuned.btio(after="echo the mesh is missing >&2; exit 3 # still")
    assert "another script" in refused(tuned)


def test_a_check_that_the_default_run_does_not_pass(tuned):
    tuned.btio()
    err = refused(tuned, "--check", "test -s out/btio.full.out && exit 9", runs=1)
    assert "the check command ended with status 9" in err


def test_an_output_that_differs_from_run_to_run(tuned):
    noise = (
        "head -c 512 /dev/urandom | dd of=out/btio.full.out conv=notrunc status=none"
    )
    tuned.btio(before=WITHOUT_BUFFERING, after=noise, points=24, dumps=1)
    err = refused(tuned, *EMULATED, "--budget", "6", runs=3)
    assert "differs from run to run: out/btio.full.out" in err and "--check" in err


def test_an_application_that_ignores_hints(tuned):
    # As where a launcher hands on no variables. Not emulated: Lustre's settings need none.
    tuned.btio("--sync", wrapper="env -u MPICH_MPIIO_HINTS", points=64, dumps=4)
    status, out, err = tuned.tune("--budget", "10")
    assert status == 0, err
    verdict = tuned.study().verdicts["file-system"]
    assert not verdict.recommended
    assert "ignores hints" in verdict.reason
    assert [run.status for run in tuned.runs()] == ["ok", "ineffective"]


def test_a_study_of_another_script_or_made_otherwise(tuned):
    tuned.script("exit 1")
    refused(tuned, runs=1)
    assert "begun with strategy tpe, not greedy" in refused(
        tuned, "--strategy", "greedy", runs=1
    )
    tuned.script("exit 2")
    assert "another script" in refused(tuned, runs=1)


def test_a_tuned_script_that_somebody_else_wrote_stays(tuned):
    tuned.script("exit 1")
    tuned.tuned.write_text("mine")
    status, _, err = tuned.tune()
    assert (
        status == 1
        and "job.tuned.sh: there is such a file" in err
        and "--overwrite" in err
    )
    assert tuned.tuned.read_text() == "mine"
    assert tuned.runs() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "lots"), "--budget lots"),
        (("--budget", "0"), "nothing can be run"),
        (("--budget", "2.5"), "runs are whole"),
        (("--budget", "3weeks"), "the unit weeks"),
        (("--trials", "3"), "no study to extend"),
        (("--on", "burst-buffer"), "asks for no burst buffer"),
        (("--trace", "."), "--replay"),
        (("--think", "0.5"), "--replay"),
        (("--dry-run", "--json"), "leave one out"),
        (("--capacity", "lots"), "job.sh: it cannot be run with --capacity lots: invalid value"),
        (("--output", "no such directory/job.sh"), "cannot be written"),
    ],
)
def test_options_that_cannot_be(tuned, options, message):
    tuned.script("true")
    told = refused(tuned, *options, runs=0)
    assert message in told and "hint: " in told


def test_a_job_whose_input_names_its_own_directory(tuned):
    # Its script does not say it so that it could be seen, as where an input deck does.
    hidden = str(tuned.directory).replace("submit", "sub''mit")
    tuned.btio(before=f"here={hidden.replace(' ', chr(92) + ' ')}", out="$here")
    err = refused(tuned, runs=1)
    assert "by its full name, not to the copy" in err and "relative" in err


def test_a_replay_of_a_job_that_names_its_own_directory(tuned):
    tuned.btio(before=f"cd '{tuned.directory}'")
    err = refused(tuned, "--replay", runs=0)
    assert "names its own directory" in err and "hint: " in err


def test_two_tuners_of_one_study(tuned):
    tuned.script("sleep 300")
    first = tuned.start()
    output = tuned.study_directory / "runs" / "0001" / "output.txt"
    wait_until(output.exists, what="the first run")
    status, _, err = tuned.tune()
    first.send_signal(INTERRUPT)
    first.communicate(timeout=60)
    assert status == 1 and "another forebay tune is writing this study" in err
    assert first.returncode == 130


def test_a_script_that_is_not_there_or_no_shell(tuned):
    assert "No such file" in refused(tuned, runs=0)
    (tuned.directory / "job.sh").write_text("#!/usr/bin/env python3\nprint()\n")
    assert "python3" in refused(tuned, runs=0)
