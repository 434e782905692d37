"""Whole tunings of a made-up job: places, budgets, trials that fail, machines that are busy."""

import json
import stat
from pathlib import Path

import pytest

from forebay.report.tuning.figures import figures
from forebay.profiles.model import File, Job, Layer, Profile, Program, Traffic
from forebay.tune.decide import eligibility
from support.tuner import DW, EMULATED, HINTED

BOTH_PLACES = {"out": "${DW_JOB_STRIPED:-$PWD/}", "directive": DW}


def test_tune_finds_and_writes_a_faster_script_then_reports_its_result(tuned):
    tuned.app("--verify")
    (tuned.directory / "job.sh").chmod(0o750)
    status, out, err = tuned.tune(*EMULATED, "--budget", "12", "--seed", "1", "--json")
    assert status == 0 and json.loads(out), err
    study = tuned.study()
    verdict = study.verdicts["file-system"]
    assert verdict.recommended and verdict.pairing.low > 1
    assert verdict.recommended["out:cb_nodes"] == "8"
    assert [run.number for run in study.runs] == list(range(1, len(study.runs) + 1))
    assert len(study.runs) <= 12
    assert {run.checked for run in study.runs} == {"verified by the program"}
    assert (study.head.emulated, study.ends[-1].reason) == ("lustre-small", "done")
    assert stat.S_IMODE(tuned.tuned.stat().st_mode) == 0o750
    original = (tuned.directory / "job.sh").read_text().splitlines()
    assert [line for line in tuned.tuned.read_text().splitlines() if line in original] == original
    assert not (tuned.directory / "out").exists(), "runs are in a copy"

    assert "in place of" in tuned.tunes() and tuned.study().runs == study.runs
    assert "there is a verdict: --trials N tries more" in tuned.tunes("--budget", "12")

    tuned.tunes("--trials", "2")
    more = tuned.study().runs
    assert more[: len(study.runs)] == study.runs
    assert len(study.runs) < len(more) <= len(study.runs) + 2
    assert tuned.phases().count("default") == 1


def test_tune_for_two_storages_keeps_one_budget(tuned):
    tuned.app(**BOTH_PLACES)
    tuned.tunes(*EMULATED, "--budget", "7", "--budget", "30min")
    study = tuned.study()
    assert len(study.runs) <= 7
    assert [run.place for run in study.runs if run.phase == "default"] == ["file-system", "burst-buffer"]
    assert set(study.verdicts) == {"file-system", "burst-buffer"}
    log = (tuned.study_directory / "forebay.log").read_text()
    assert log.count("a made-up series") == 2, "one series for each place"


def test_tune_of_a_job_that_names_its_directory_uses_the_copy(tuned):
    tuned.app(before=f"cd '{tuned.directory}'", after="echo done > mine.txt")
    (tuned.directory / "mine.txt").write_text("mine")
    tuned.tunes(*EMULATED, "--budget", "3")
    assert {run.status for run in tuned.runs()} <= {"ok", "ineffective"}
    assert len(tuned.runs()) >= 2
    assert (tuned.study_directory / "runs" / "0002" / "job.json").exists()
    assert (tuned.directory / "mine.txt").read_text() == "mine"
    assert not (tuned.directory / "out").exists()


def test_tune_of_a_job_that_changes_to_its_submit_directory_uses_the_copy(tuned):
    tuned.app(before='cd "$SLURM_SUBMIT_DIR"')
    tuned.set(SLURM_JOB_ID="77", SLURM_NTASKS="8", SLURM_SUBMIT_DIR=tuned.directory)
    tuned.tune("--budget", "1")
    assert [run.status for run in tuned.runs()] == ["ok"]
    assert not (tuned.directory / "out").exists()


def test_tune_with_time_for_one_run_ends_after_it(tuned):
    tuned.app("--compute 7")
    tuned.tunes("--budget", "700s", "--dry-run")
    (spent,) = tuned.runs()
    tuned.tunes("--budget", f"{2.4 * spent.job_s}s")
    assert len(tuned.runs()) == 1
    assert not tuned.tuned.exists()
    assert tuned.study().ends[-1].reason == "budget" and tuned.study().verdicts == {}


def test_tune_begins_no_run_that_may_outlast_its_time(tuned):
    """A job that ignores the first signal lives ten seconds longer."""
    tuned.app()
    tuned.tunes("--budget", "10s")
    assert tuned.runs() == [] and tuned.study().ends[-1].reason == "budget"
    status, _, err = tuned.tune("--budget", "10s", "--dry-run")
    assert status == 1 and "the budget is over before a run" in err
    tuned.tunes("--budget", "10min", "--dry-run")
    (spent,) = tuned.runs()
    assert spent.status == "ok"
    tuned.tunes("--budget", f"{1.2 * spent.job_s + 10 + tuned.study().spent_s()}s")
    assert len(tuned.runs()) == 1


def test_tune_with_too_few_runs_reports_it_and_a_larger_budget_continues(tuned):
    tuned.app()
    said = tuned.tunes(*EMULATED, "--budget", "2")
    assert "The budget left no room for the final round" in said and "looked" in said
    assert "The budget is spent: more runs may change the verdict on the file system" in said
    assert "a larger --budget, or --trials N, goes on" in said
    assert tuned.study().ends[-1].reason == "budget" and not tuned.tuned.exists()
    tuned.tunes("--budget", "6")
    assert tuned.phases()[:2] == ["default", "probe"]
    assert tuned.study().ends[-1].reason == "done" and tuned.tuned.exists()


def test_tune_dry_run_shows_settings_with_reasons_and_keeps_its_run(tuned):
    tuned.app()
    said = tuned.tunes(*EMULATED, "--dry-run")
    assert "out:romio_cb_write" in said and "Tried first:" in said and "Not tried:" in said
    assert "…" not in said and "rank(s), is on 1 of 8 storage target(s)" in said
    assert tuned.phases() == ["default"]
    assert not tuned.tuned.exists()
    tuned.tunes("--budget", "2")
    assert tuned.phases().count("default") == 1


def test_tune_with_few_more_runs_keeps_earlier_proof(tuned):
    tuned.app()
    tuned.tunes(*EMULATED, "--budget", "6")
    shown = tuned.study().verdicts["file-system"]
    assert shown.recommended and tuned.tuned.exists()
    assert "what it showed stays" in tuned.tunes("--trials", "1")
    assert tuned.study().verdicts["file-system"] == shown
    assert tuned.tuned.exists()


def test_tune_on_a_node_that_others_keep_busy_counts_its_runs_everywhere(tuned):
    tuned.app()
    tuned.load[:] = [(0.1, 0.5)] * 3 + [(0.6, 1.0)] * 9
    tuned.tunes(*EMULATED, "--budget", "12")
    study, runs = tuned.study(), tuned.runs()
    assert [run.status for run in runs].count("contaminated") == 2
    verdict = study.verdicts["file-system"]
    assert verdict.recommended and "the job as a whole" in verdict.reason
    (place,) = figures(study).places
    assert place.job_proof.pairs == verdict.pairing.pairs == len(place.sample(verdict.recommended).runs)


def test_tune_trial_that_hangs_fails_and_the_search_continues(tuned):
    once = f"'{tuned.temporary.parent}/hung'"
    tuned.app("--compute $waits", before=f"waits=0; {HINTED} mkdir {once} && waits=1000 ;; esac")
    tuned.tunes("--budget", "8", "--time-factor", "1")
    trials = [run for run in tuned.runs() if run.configuration]
    assert [run.status for run in trials].count("failed") == 1
    assert trials[0].status == "failed" and "did not end in time" in trials[0].reason
    assert len(trials) > 1
    assert tuned.study().verdicts["file-system"].recommended != trials[0].configuration


def test_tune_trial_whose_output_is_wrong_fails(tuned):
    tuned.app(after=f"{HINTED} echo wrong > out ;; esac")
    tuned.tunes("--budget", "5")
    trials = [run for run in tuned.runs() if run.configuration]
    assert trials and all(run.status == "failed" and "out" in run.reason for run in trials)
    assert tuned.phases()[:3] == ["default", "probe", "anchor"], "is it the setting's fault?"
    anchor = tuned.runs()[2]
    assert (anchor.status, anchor.checked) == ("ok", "the same bytes: out")
    assert not tuned.study().verdicts["file-system"].recommended
    assert not tuned.tuned.exists()


@pytest.mark.soak
@pytest.mark.parametrize(("busy", "status"), [(1.0, "contaminated"), (0.5, "ok")])
def test_tune_run_on_a_busy_node_is_repeated(tuned, busy, status):
    tuned.app()
    tuned.load[:] = [(0.1, 0.5)] * 3 + [(0.6, busy)]
    tuned.tunes(*EMULATED, "--budget", "12")
    runs = tuned.runs()
    assert [run.status for run in runs[:5]] == ["ok", "ok", "ok", status, "ok"]
    if status == "contaminated":
        assert runs[3].reason == "others had 60 % of the processors"
        assert runs[4].configuration == runs[3].configuration
    assert all(run.foreign_cpu == 0.1 for run in runs[:3])


@pytest.mark.parametrize(
    ("before", "now", "other"),
    [
        ("/mnt/forebay/1795476034261/striped/", "/mnt/forebay/1795476999999/striped/", "/other/1795476999999/striped/"),
        (
            "/tmp/forebay-node-1795476034261-17d71af21c3f/mount/striped/",
            "/tmp/forebay-node-1795476999999-d7b2daf62c51/mount/striped/",
            "/tmp/forebay-node-1795476999999-d7b2daf62c51/data/striped/",
        ),
    ],
    ids=["one-node", "several-nodes"],
)
def test_burst_buffer_of_an_earlier_job_counts_as_inside_the_job_directory(tmp_path, before, now, other):
    """A dry run leaves the profile of the default; the next call has a burst buffer of another name."""
    file = File(path=before + "out", layers={"posix": Layer(read=Traffic(), write=Traffic(bytes=1))})
    profile = Profile(source="forebay", path="x", job=Job(), programs=[Program(files=[file], uses_mpi=True)])
    assert eligibility.warnings(profile, tmp_path, tmp_path, {"DW_JOB_STRIPED": now}) == []
    assert eligibility.warnings(profile, tmp_path, tmp_path, {"DW_JOB_STRIPED": other}) != []


@pytest.mark.parametrize("target", ["results", "results/out"])
def test_tune_of_a_job_that_writes_through_a_link_keeps_the_original(tuned, target):
    elsewhere = tuned.directory.parent / "results"
    elsewhere.mkdir()
    (elsewhere / "out").write_text("mine")
    (tuned.directory / Path(target).name).symlink_to(elsewhere.parent / target)
    where = "results/" if target == "results" else ""
    tuned.app(before=f'grep -q mine "{where}out"', after=f'echo new > "{where}out"', out=where)
    said = tuned.tunes(*EMULATED, "--budget", "2")
    assert "outside of the job's directory: runs use a copy" in said and "outside of its own directory" not in said
    assert {run.status for run in tuned.runs()} <= {"ok", "ineffective"} and len(tuned.runs()) == 2
    assert (elsewhere / "out").read_text() == "mine"


def test_output_through_a_link_that_is_kept_is_reported(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    file = File(path="/jobs/a/link/out", layers={"posix": Layer(read=Traffic(), write=Traffic(bytes=1))})
    profile = Profile(source="forebay", path="x", job=Job(), programs=[Program(files=[file], uses_mpi=True)])
    (told,) = eligibility.warnings(profile, Path("/jobs/a"), tmp_path / "work", {})
    assert str(tmp_path / "elsewhere") in told
