"""What cannot be tuned, and why: the tuner says it before it runs much."""

import pytest

from support.job import INTERRUPT
from support.tuner import EMULATED, HINTED
from support.waiting import wait_until


def test_tune_without_mpi_is_refused(tuned):
    tuned.script("echo nothing to see")
    assert "ran no MPI program" in tuned.refused(runs=1)


def test_tune_of_a_job_without_io_ends_after_one_run(tuned):
    tuned.app("--compute 400")
    assert "nothing to gain" in tuned.tunes("--budget", "3")
    assert "I/O is" in tuned.study().verdicts["file-system"].reason
    assert len(tuned.runs()) == 1
    assert not tuned.tuned.exists()


def test_tune_shows_the_output_of_a_failed_default_run(tuned):
    tuned.app(after="echo the mesh is missing >&2; exit 3")
    err = tuned.refused(runs=1)
    assert "status 3" in err and "the mesh is missing" in err and "output.txt" in err
    # The study holds this failure only: the call that corrects it begins it again.
    tuned.app()
    tuned.tunes("--budget", "2")
    assert "default" in tuned.phases()


def test_tune_refuses_a_check_that_the_default_run_does_not_pass(tuned):
    tuned.app()
    err = tuned.refused("--check", "test -s out && exit 9", runs=1)
    assert "the check command ended with status 9" in err


def test_tune_refuses_output_that_varies_between_runs(tuned):
    tuned.app(after="echo $RANDOM$RANDOM >> out")
    err = tuned.refused(*EMULATED, "--budget", "6", runs=3)
    assert "differs from run to run: out" in err and "--check" in err


def test_tune_of_an_application_that_ignores_hints_ends_after_probes_of_two_kinds(tuned):
    # As where a launcher drops variables. Not emulated: Lustre's settings need none.
    tuned.app("--deaf")
    tuned.tunes("--budget", "10")
    verdict = tuned.study().verdicts["file-system"]
    assert not verdict.recommended and "ignores hints" in verdict.reason
    assert [run.status for run in tuned.runs()] == ["ok", "ineffective", "ineffective"]


def test_tune_of_a_setting_that_counters_do_not_show_finds_its_gain(tuned):
    tuned.app("--deaf", "--compute ${waits:-0}", before=f"{HINTED} ;; *) waits=20 ;; esac")
    tuned.tunes("--budget", "12", "--objective", "job")
    assert {run.status for run in tuned.runs()} == {"ok"}
    assert tuned.study().verdicts["file-system"].recommended


def test_tune_refuses_a_study_of_another_script_or_with_other_options(tuned):
    tuned.app()
    tuned.tunes(*EMULATED, "--dry-run")
    status, _, err = tuned.tune("--strategy", "greedy")
    assert status == 1 and "begun with strategy tpe, not greedy" in err, err
    tuned.script("exit 2")
    status, _, err = tuned.tune()
    assert status == 1 and "another script" in err and len(tuned.runs()) == 1, err


def test_tune_refuses_to_continue_with_changed_input_or_hints(tuned):
    tuned.app()
    (tuned.directory / "mesh").write_text("coarse")
    tuned.tunes(*EMULATED, "--budget", "2")
    tuned.set(MPICH_MPIIO_HINTS="*:cb_nodes=2")
    status, _, err = tuned.tune("--budget", "4")
    assert status == 1 and "begun with MPICH_MPIIO_HINTS none, not *:cb_nodes=2" in err, err
    tuned.patch.delenv("MPICH_MPIIO_HINTS")
    (tuned.directory / "mesh").write_text("much finer")
    status, _, err = tuned.tune("--budget", "4")
    assert status == 1 and "mesh was changed or removed since the study began" in err, err
    assert len(tuned.runs()) == 2


def test_tune_keeps_a_tuned_script_of_another_writer(tuned):
    tuned.script("exit 1")
    tuned.tuned.write_text("mine")
    status, _, err = tuned.tune()
    assert status == 1 and "job.tuned.sh: there is such a file" in err and "--overwrite" in err
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
def test_tune_impossible_options_are_refused_with_a_hint(tuned, options, message):
    tuned.script("true")
    err = tuned.refused(*options, runs=0)
    assert message in err and "hint: " in err


def test_tune_refuses_a_job_whose_input_names_its_own_directory(tuned):
    # The script hides the name, as an input deck does.
    hidden = str(tuned.directory).replace("submit", "sub''mit")
    tuned.app(before=f"here={hidden}", out="$here/")
    err = tuned.refused(runs=1)
    assert "by its full name, not to the copy" in err and "relative" in err


def test_tune_refuses_to_replay_a_job_that_names_its_own_directory(tuned):
    tuned.app(before=f"cd '{tuned.directory}'")
    err = tuned.refused("--replay", runs=0)
    assert "names its own directory" in err and "hint: " in err


@pytest.mark.parametrize(
    ("study", "file"),
    [
        (".", "work/thesis.dat"),
        ("..", "submit/runs/0001/thesis.dat"),
        ("results", "results/thesis.dat"),
        ("results", "results/study.jsonl"),
        ("job.tune", "job.tune/work/thesis.dat"),
    ],
)
def test_tune_refuses_a_study_directory_that_has_files_of_the_user(tuned, study, file):
    tuned.script("exit 1")
    mine = tuned.directory.parent / file if study == ".." else tuned.directory / file
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    for _ in range(2):
        status, _, err = tuned.tune("--study", study)
        assert status == 1 and "hint: " in err and not (mine.parent / "work").exists(), err
        assert mine.read_text() == "mine" and (tuned.directory / "job.sh").exists()


def test_tune_refuses_to_continue_a_study_in_the_directory_of_the_script(tuned):
    tuned.script("exit 1")
    tuned.refused(runs=1)
    for path in tuned.study_directory.iterdir():
        path.rename(tuned.directory / path.name)
    (tuned.directory / "mine.dat").write_text("mine")
    tuned.script("exit 2")
    status, _, err = tuned.tune("--study", ".")
    assert status == 1 and "directory that has the script" in err
    assert (tuned.directory / "mine.dat").read_text() == "mine"


def test_tune_that_restarts_a_failed_study_removes_only_what_the_study_made(tuned):
    tuned.script("exit 1")
    tuned.refused(runs=1)
    (tuned.study_directory / "notes.txt").write_text("mine")
    (tuned.study_directory / "submitted").mkdir()
    tuned.script("exit 2")
    tuned.refused(runs=1)
    assert "status 2" in tuned.runs()[0].reason
    assert (tuned.study_directory / "notes.txt").read_text() == "mine"
    assert (tuned.study_directory / "submitted").exists()


@pytest.mark.soak
def test_tune_refuses_a_study_that_another_tuner_writes(tuned):
    tuned.script("sleep 300")
    first = tuned.start()
    wait_until((tuned.study_directory / "runs" / "0001" / "output.txt").exists, what="the first run", process=first)
    status, _, err = tuned.tune()
    first.send_signal(INTERRUPT)
    first.communicate(timeout=300)
    assert status == 1 and "another forebay tune is writing this study" in err
    assert first.returncode == 130


def test_tune_refuses_a_missing_or_non_shell_script(tuned):
    assert "No such file" in tuned.refused(runs=0)
    (tuned.directory / "job.sh").write_text("#!/usr/bin/env python3\nprint()\n")
    assert "python3" in tuned.refused(runs=0)
