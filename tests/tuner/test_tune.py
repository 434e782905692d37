"""Whole tunings of real jobs."""

import json
import stat

from support.mpi import LAUNCHING
from support.tuner import EMULATED, WITHOUT_BUFFERING


def test_what_is_better_is_found_written_and_better_by_its_counters(tuned):
    tuned.btio("--verify", before=WITHOUT_BUFFERING)
    status, out, err = tuned.tune(*EMULATED, "--budget", "12", "--seed", "1", "--json")
    assert status == 0, err
    study = tuned.study()
    verdict = study.verdicts["file-system"]
    assert verdict.recommended, verdict.reason
    assert verdict.pairing.low > 1
    assert [run.number for run in study.runs] == list(range(1, len(study.runs) + 1))
    assert len(study.runs) <= 12
    assert all(
        run.checked == "verified by the program"
        for run in study.runs
        if run.status == "ok"
    )
    assert (study.head.emulated, study.ends[-1].reason) == ("lustre-small", "done")
    assert stat.S_IMODE(tuned.tuned.stat().st_mode) == 0o750
    assert json.loads(out) and (tuned.study_directory / "report.html").exists()
    original, changed = (
        (tuned.directory / "job.sh").read_text(),
        tuned.tuned.read_text(),
    )
    assert [
        line for line in changed.splitlines() if line in original.splitlines()
    ] == original.splitlines()
    assert not (tuned.directory / "out").exists(), "runs are in a copy"

    done = tuned.job.command("run", *EMULATED, "job.tuned.sh", **LAUNCHING)
    assert done.returncode == 0, done.stderr
    by_default = tuned.system_writes(tuned.study_directory / study.runs[0].record)
    assert tuned.system_writes(tuned.job.records()[-1]) < by_default / 4

    again, out, _ = tuned.tune()
    assert (again, tuned.study().runs) == (0, study.runs), (
        "a study that is finished says its result"
    )
    assert "in place of" in out

    status, _, err = tuned.tune("--trials", "2")
    more = tuned.study().runs
    assert status == 0, err
    assert more[: len(study.runs)] == study.runs
    assert len(study.runs) < len(more) <= len(study.runs) + 2
    assert [run.phase for run in more].count("default") == 1


def test_both_places_within_one_hard_budget(tuned):
    tuned.btio(before=WITHOUT_BUFFERING, out="${DW_JOB_STRIPED:-$PWD/}")
    status, _, err = tuned.tune(*EMULATED, "--budget", "7", "--budget", "3min")
    assert status == 0, err
    study = tuned.study()
    assert len(study.runs) <= 7
    assert [run.place for run in study.runs if run.phase == "default"] == [
        "file-system",
        "burst-buffer",
    ]
    assert set(study.verdicts) == {"file-system", "burst-buffer"}
    staged = (tuned.study_directory / "forebay.log").read_text()
    assert staged.count("is emulated") == 2, "one series for each place"


def test_a_job_that_names_its_directory_works_in_the_copy_all_the_same(tuned):
    tuned.btio(
        before=f"cd '{tuned.directory}'\n{WITHOUT_BUFFERING}",
        after="echo done > mine.txt",
    )
    (tuned.directory / "mine.txt").write_text("mine")
    status, _, err = tuned.tune(*EMULATED, "--budget", "3")
    assert status == 0, err
    assert {run.status for run in tuned.runs()} <= {"ok", "ineffective"}
    assert len(tuned.runs()) >= 2
    assert (tuned.study_directory / "runs" / "0002" / "job.json").exists()
    assert (tuned.directory / "mine.txt").read_text() == "mine"
    assert not (tuned.directory / "out").exists()


def test_a_job_that_goes_to_where_a_scheduler_says_it_was_submitted_works_in_the_copy(tuned):
    tuned.btio(before='cd "$SLURM_SUBMIT_DIR"')
    around = {"SLURM_JOB_ID": "77", "SLURM_NTASKS": "4", "SLURM_SUBMIT_DIR": str(tuned.directory)}
    process = tuned.start(*EMULATED, "--budget", "1", **around)
    _, err = process.communicate(timeout=60)
    assert [run.status for run in tuned.runs()] == ["ok"], err
    assert not (tuned.directory / "out").exists()


def test_a_time_that_is_too_short_for_a_second_run_ends_after_the_first(tuned):
    tuned.btio(before=WITHOUT_BUFFERING + "\nsleep 2")
    status, out, err = tuned.tune(*EMULATED, "--budget", "5s")
    assert status == 0, err
    study = tuned.study()
    assert len(study.runs) == 1
    assert not tuned.tuned.exists()
    assert study.ends[-1].reason == "budget" and study.verdicts == {}


def test_a_budget_too_small_for_a_verdict_says_so_and_a_larger_one_goes_on(tuned):
    tuned.btio(before=WITHOUT_BUFFERING)
    status, out, err = tuned.tune(*EMULATED, "--budget", "2")
    assert status == 0, err
    told = " ".join(out.split())
    assert "The budget left no room for the final round" in told and "looked" in told
    assert "The budget is spent: too early to decide on the file system" in told
    assert "a larger --budget, or --trials N, goes on" in told
    assert tuned.study().ends[-1].reason == "budget" and not tuned.tuned.exists()
    status, out, err = tuned.tune("--budget", "6")
    assert status == 0, err
    assert [run.phase for run in tuned.runs()][:2] == ["default", "probe"]
    assert tuned.study().ends[-1].reason == "done" and tuned.tuned.exists(), out


def test_a_dry_run_shows_what_can_be_set_and_why_and_its_run_is_kept(tuned):
    tuned.btio(before=WITHOUT_BUFFERING)
    status, out, err = tuned.tune(*EMULATED, "--dry-run")
    assert status == 0, err
    assert (
        "btio.full.out:romio_cb_write" in out
        and "Tried first:" in out
        and "Not tried:" in out
    )
    assert "…" not in out and "rank(s), lies on 1 of 8 storage target(s)" in " ".join(out.split())
    assert [run.phase for run in tuned.runs()] == ["default"]
    assert not tuned.tuned.exists()
    status, _, err = tuned.tune("--budget", "2")
    assert status == 0, err
    assert [run.phase for run in tuned.runs()].count("default") == 1


def test_too_few_runs_more_take_back_nothing_that_was_shown(tuned):
    tuned.btio(before=WITHOUT_BUFFERING)
    status, _, err = tuned.tune(*EMULATED, "--budget", "6")
    assert status == 0 and tuned.tuned.exists(), err
    shown = tuned.study().verdicts["file-system"]
    status, _, err = tuned.tune("--trials", "1")
    assert status == 0, err
    assert "what the last one has shown stays" in err
    assert tuned.study().verdicts["file-system"] == shown
    assert tuned.tuned.exists()


#: Not emulated, so that each trial sets hints, which these jobs look for.
HINTED = 'case "${MPICH_MPIIO_HINTS:-}" in *btio*)'


def test_a_trial_that_hangs_fails_and_the_search_goes_on(tuned):
    once = f"'{tuned.job.temporary.parent}/hung'"
    tuned.btio(
        "--sync",
        before=f"{HINTED} mkdir {once} && sleep 1000 ;; esac",
        points=64,
        dumps=4,
    )
    status, _, err = tuned.tune("--budget", "8", "--time-factor", "1")
    assert status == 0, err
    trials = [run for run in tuned.runs() if run.configuration]
    assert [run.status for run in trials].count("failed") == 1
    assert trials[0].status == "failed" and "did not end in time" in trials[0].reason
    assert len(trials) > 1
    assert tuned.study().verdicts["file-system"].recommended != trials[0].configuration
    tuned.leaves_no_process()


def test_a_trial_whose_output_is_wrong_fails(tuned):
    wrong = f"{HINTED} echo wrong | dd of=out/btio.full.out conv=notrunc status=none ;; esac"
    tuned.btio("--sync", after=wrong, points=64, dumps=4)
    status, _, err = tuned.tune("--budget", "5")
    assert status == 0, err
    runs = tuned.runs()
    trials = [run for run in runs if run.configuration]
    assert trials and all(run.status == "failed" for run in trials)
    assert all("btio.full.out" in run.reason for run in trials)
    assert [run.phase for run in runs[:3]] == ["default", "probe", "anchor"], (
        "is it the setting's fault?"
    )
    assert (
        runs[2].status == "ok"
        and runs[2].checked == "the same bytes: out/btio.full.out"
    )
    assert not tuned.study().verdicts["file-system"].recommended
    assert not tuned.tuned.exists()
