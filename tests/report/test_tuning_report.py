"""What `forebay report JOB.tune` tells of a study."""

import hashlib
import io
import json
import pathlib
import re

import msgspec
import pytest
from support.strace import few
from support import record_data
from support import study_data
from rich.console import Console
from forebay.report import tuning
from forebay.report.tuning import pictures, records, sentences, tables
from forebay.report.tuning.figures import figures
from forebay.tune.model import Pairing, Parameter, Verdict
from forebay.tune.study import Study

HEADINGS = "[...document.querySelectorAll('h3')].map(h => h.textContent)"
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
TEXT = "document.querySelector('main').textContent"


@pytest.fixture(scope="module")
def recorded_runs(tmp_path_factory):
    """Records of a default and of a tuned run."""

    def made(name: str, job_s: float) -> pathlib.Path:
        state = tmp_path_factory.mktemp(name)
        job = record_data.job_json(outcome={"job_status": 0, "job_s": job_s, "exit_code": 0})
        file = record_data.posix_file("/scratch/out", written_bytes=1 << 20, write_s=1.0)
        return record_data.record(state, job, record_data.step(file))

    return made("default", 1.6), made("tuned", 1.2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, recorded_runs):
    """Nobody may change it."""
    directory = tmp_path_factory.mktemp("study") / "btio.tune"
    with study_data.whole(directory, recorded_runs) as study:
        yield study


@pytest.fixture(scope="module")
def page(whole):
    return tuning.write_page(whole.directory)


def summary(study) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False, markup=False)
    tuning.print_summary(console, study)
    return console.file.getvalue()


def begun(directory, **head):
    study = Study.create(directory, study_data.head(**head))
    return study, study_data.Writer(study)


def test_summary_states_what_is_proven_for_each_storage(whole):
    proof = whole.verdicts["file-system"].pairing
    first, second = sentences.verdicts(figures(whole))
    assert f"{proof.ratio:.2f} times as fast ({proof.low:.2f} to {proof.high:.2f}, 6 pairs, 95 %)" in first
    assert "on the file system the job takes" in first.lower()
    assert second.startswith("With its burst buffer: keep the default. ")
    assert "is not shown to be quicker" in second


def test_summary_has_four_rows_and_labelled_tables(whole):
    told = figures(whole)
    rows = [[cell.text for cell in row] for row in tables.outcome(told).rows]
    assert [row[:2] for row in rows] == [
        ["file system", "default"],
        ["file system", "tuned"],
        ["burst buffer", "default"],
        ["burst buffer", "best tried"],
    ]
    assert [row[5] for row in rows] == ["6", "6", "4", "4"]  # those of the final rounds alone
    captions = [
        table.caption
        for place in told.places
        for table in (tables.runs(told, place), tables.cost(told), tables.refusals(told), tables.idle(told))
    ]  # fmt: skip
    assert all("emulated file system: lustre-small" in caption for caption in captions)


def test_table_agrees_with_the_final_pairs(whole):
    """Not with the runs of the default nearby in time, which say something else while a machine changes."""
    told = figures(whole)
    for place, rows in zip(told.places, (tables.outcome(told).rows[:2], tables.outcome(told).rows[2:]), strict=True):
        default, other = (row[-1].number for row in rows)
        assert default == 1 and other == pytest.approx(1 / place.verdict.pairing.ratio)


def test_kept_default_is_reported_with_the_rejected_setting(tmp_path):
    """The other one had a faster run in the search, and the pairing was not its."""
    study, writer = begun(tmp_path / "a.tune")
    study.append_plan("file-system", study_data.plan())
    for phase, seconds, configuration in (
        ("default", 2.0, {}), ("search", 0.5, {"a": "1"}), ("search", 1.8, {"b": "1"}), ("final", 2.0, {}),
        ("final", 1.9, {"b": "1"}), ("final", 1.7, {"a": "1"}), ("final", 1.9, {"b": "1"}), ("final", 2.0, {}),
    ):  # fmt: skip
        writer.run("file-system", phase, configuration, seconds=seconds, job_s=seconds)
    pairing = Pairing(pairs=2, ratio=1.05, low=0.9, high=1.2, confidence=0.95, default_s=2.0, tuned_s=1.9)
    study.append_verdict("file-system", Verdict(recommended={}, reason="it is not shown", pairing=pairing))
    told = figures(study)
    assert told.places[0].best == {"b": "1"}
    assert tables.outcome(told).rows[1][-1].text == "0.95"


def test_replayed_search_is_reported_by_its_real_runs(tmp_path):
    """Times of a replay are none of the job."""
    study, writer = begun(tmp_path / "a.tune", replay=True, objective="io")
    plan = msgspec.structs.replace(study_data.plan(), confirm_pairs=2)
    study.append_plan("file-system", plan)
    for replay, phase, seconds, configuration in (
        (False, "default", 4.0, {}), (True, "default", 1.0, {}), (True, "search", 0.4, {"a": "1"}),
        (True, "final", 1.0, {}), (True, "final", 0.4, {"a": "1"}), (True, "final", 0.4, {"a": "1"}),
        (True, "final", 1.0, {}), (False, "final", 2.0, {"a": "1"}), (False, "final", 4.0, {}),
        (False, "final", 4.0, {}), (False, "final", 2.0, {"a": "1"}),
    ):  # fmt: skip
        writer.run(
            "file-system", phase, configuration, seconds=seconds, job_s=10 * seconds, io_s=seconds, replay=replay
        )  # fmt: skip
    pairing = Pairing(pairs=2, ratio=2.0, low=1.8, high=2.2, confidence=0.95, default_s=4.0, tuned_s=2.0)
    study.append_verdict("file-system", Verdict(recommended={"a": "1"}, reason="shown", pairing=pairing))
    told = figures(study)
    rows = [[cell.text for cell in row] for row in tables.outcome(told).rows]
    assert [row[-1] for row in rows] == ["1.00", "0.50"] and [row[5] for row in rows] == ["2", "2"]
    assert rows[0][4] == "4 s" and rows[1][4] == "2 s"
    assert "search, replay" in [row[1].text for row in tables.runs(told, told.places[0]).rows]


def test_search_with_only_failures_reports_their_number(tmp_path):
    study, writer = begun(tmp_path / "a.tune")
    writer.run("file-system", "default")
    for value in "12":
        writer.run("file-system", "probe", {"a": value}, status="failed", reason="it ended with status 3")
    assert tables.outcome(figures(study)).rows[1][1].text == "none of 2 tried counts"


def test_costs_cover_all_runs_and_payback_uses_the_job_time(tmp_path):
    study, writer = begun(tmp_path / "a.tune")
    study.append_plan("file-system", study_data.plan(nodes=4))
    for job_s, phase, configuration in (
        (100.0, "default", {}), (80.0, "final", study_data.BEST), (100.0, "final", {}), (80.0, "final", study_data.BEST), (100.0, "final", {}),
    ):  # fmt: skip
        writer.run("file-system", phase, configuration, job_s=job_s, seconds=job_s, io_s=1.0)
    writer.run(
        "file-system", "search", study_data.BEST, status="failed", seconds=None, job_s=260.0, reason="hangs"
    )  # fmt: skip
    writer.final("file-system", 2, 100.0)
    told = figures(study)
    before = sum(run.job_s for run in study.runs) * 4 / 3600
    assert told.cost_node_hours == pytest.approx(before)
    study.append_verdict(
        "file-system",
        Verdict(
            recommended=study_data.BEST,
            reason="",
            pairing=Pairing(
                pairs=2, ratio=1.4, low=1.3, high=1.5, confidence=0.95, default_s=100.0, tuned_s=70.0,
            ),
        ),
    )  # fmt: skip
    told = figures(study)
    (place,) = told.places
    default_s, tuned_s = (
        sorted(run.job_s for run in place.runs[-4:] if bool(run.configuration) == tuned) for tuned in (False, True)
    )
    gain_s = sum(default_s) / 2 - sum(tuned_s) / 2
    assert place.gain_s == pytest.approx(gain_s)
    runs = told.paid_after_runs(place)
    assert (runs - 1) * gain_s < sum(run.job_s for run in study.runs) <= runs * gain_s * 1.000001


def test_slower_storage_is_reported(tmp_path):
    """Faster I/O of a slower job is told as what it is, and pays nothing back."""
    study, writer = begun(tmp_path / "a.tune", objective="io")
    study.append_plan("burst-buffer", study_data.plan())
    for io_s, job_s, configuration in (
        (0.5, 1.0, {}), (0.3, 1.2, study_data.BEST), (0.5, 1.01, {}), (0.3, 1.21, study_data.BEST), (0.5, 1.0, {}), (0.3, 1.2, study_data.BEST),
    ):  # fmt: skip
        writer.run("burst-buffer", "final", configuration, job_s=job_s, seconds=io_s, io_s=io_s)
    proof = Pairing(
        pairs=3, ratio=1.67, low=1.5, high=1.8, confidence=0.95, default_s=0.5, tuned_s=0.3
    )  # fmt: skip
    study.append_verdict("burst-buffer", Verdict(recommended=study_data.BEST, reason="faster I/O", pairing=proof))
    told = figures(study)
    (sentence,) = sentences.verdicts(told)
    assert "takes 1.2 s in place of 1 s: 0.83 times as fast" in sentence
    assert "its I/O is 1.67 times as fast (1.50 to 1.80, 3 pairs, 95 %)" in sentence
    assert "A gain in the run time of the whole job is not proven." in sentence
    assert told.paid_after_runs(told.places[0]) is None
    assert "never: it gains nothing" in [cell.text for row in tables.cost(told).rows for cell in row]


def test_gain_within_the_noise_of_the_job_has_no_payback(tmp_path):
    study, writer = begun(tmp_path / "a.tune", objective="io")
    study.append_plan("burst-buffer", study_data.plan())
    for io_s, job_s, configuration in (
        (0.5, 1.0, {}), (0.3, 1.01, study_data.BEST), (0.3, 0.9, study_data.BEST), (0.5, 0.98, {}),
    ):  # fmt: skip
        writer.run("burst-buffer", "final", configuration, job_s=job_s, seconds=io_s, io_s=io_s)
    proof = Pairing(pairs=2, ratio=1.67, low=1.5, high=1.8, confidence=0.95, default_s=0.5, tuned_s=0.3)
    study.append_verdict("burst-buffer", Verdict(recommended=study_data.BEST, reason="faster I/O", pairing=proof))
    told = figures(study)
    (place,) = told.places
    assert place.gain_s > 0 and told.paid_after_runs(place) is None
    cells = [cell.text for row in tables.cost(told).rows for cell in row]
    assert any("lost in its noise" in cell for cell in cells)


def test_best_so_far_is_a_median(tmp_path):
    study, writer = begun(tmp_path / "a.tune")
    for seconds, configuration in (
        (1.0, {}), (0.5, {"a": "1"}), (0.9, {"b": "1"}), (1.0, {}), (0.9, {"a": "1"}), (1.1, {"a": "1"}), (1.0, {})
    ):  # fmt: skip
        writer.run(
            "file-system", "search" if configuration else "anchor", configuration, seconds=seconds, job_s=seconds
        )  # fmt: skip
    (place,) = figures(study).places
    assert place.best_values() == pytest.approx([1.0, 0.5, 0.5, 0.5, 0.7, 0.9, 0.9])
    assert place.best in ({"a": "1"}, {"b": "1"})


def test_rejected_settings_and_runs_are_listed_with_reasons(whole):
    told = figures(whole)
    refused = [[cell.text for cell in row] for row in tables.refusals(told).rows]
    assert refused[0] == [
        "cb_buffer_size", "*.out", "ROMIO's Lustre driver takes the stripe size in its place", "file system, burst buffer",
    ]  # fmt: skip
    states = [row[2].text for row in tables.not_counted(told).rows]
    assert states == ["failed", "disturbed", "without effect", "failed"]
    assert [cell.text for cell in tables.idle(told).rows[0]][::3] == [study_data.CB_NODES.name, "1"]
    best_first = [row[2].number for row in tables.runs(told, told.places[0]).rows[:-3]]
    assert best_first == sorted(best_first)
    last = tables.runs(told, told.places[0]).rows[-1]
    assert last[2].number is None and last[-1].text.startswith("failed; its output is")


def test_search_chart_shows_every_run(whole):
    """One mark a run: the paths of the markers are told apart by their ink."""
    told = figures(whole)
    place = told.places[0]
    (broad,), (narrow,) = pictures.search(told, place)
    marks = sum(ratio is not None for ratio in place.drawn_ratios) + sum(run.status == "failed" for run in place.runs)
    in_legend = 6
    for chart in (broad, narrow):
        assert chart.on_page().count("<use ") - in_legend >= marks
    assert "32 runs, 1 failed" in broad.about and "6 pairs" in broad.about
    strips, left_out = pictures.values(told, place)
    assert {chart.title for chart in strips} == {one.name for one in study_data.PARAMETERS} and left_out == 0


@pytest.mark.soak
def test_added_lines_are_those_of_the_scripts_that_ran(whole):
    told = figures(whole)
    ((caption, lines),) = records.added_lines(told)
    assert "file system" in caption
    assert [line for line in lines if line[0] in "+-"] == [
        "+export MPICH_MPIIO_HINTS='*.out:cb_nodes=4:striping=4 x 1 MiB'"
    ]


def test_added_lines_come_from_the_tuned_script_while_it_exists(tmp_path):
    job, tuned = tmp_path / "job.sh", tmp_path / "job.tuned.sh"
    job.write_text("#!/bin/bash\nsrun ./a\n")
    tuned.write_text("#!/bin/bash\nexport A=1  # gains much\nsrun ./a\n")
    digests = [hashlib.sha256(one.read_bytes()).hexdigest() for one in (job, tuned)]
    study, _ = begun(tmp_path / "a.tune", script=str(job), script_digest=digests[0])
    study.append_written(tuned, digests[1])
    told = figures(study)
    ((_, lines),) = records.added_lines(told)
    assert [line for line in lines if line[0] != " "] == ["+export A=1  # gains much"]
    tuned.write_text("something else")
    assert records.added_lines(told) == []


def test_disturbed_run_is_drawn_but_not_counted(tmp_path):
    study, writer = begun(tmp_path / "a.tune")
    for seconds, configuration, status in (
        (2.0, {}, "ok"), (1.0, {"a": "1"}, "contaminated"), (1.5, {"b": "1"}, "ok"), (2.0, {}, "ok"),
    ):  # fmt: skip
        writer.run(
            "file-system", "search", configuration, seconds=seconds, job_s=seconds, status=status
        )  # fmt: skip
    (place,) = figures(study).places
    assert place.ratios[1] is None
    assert place.drawn_ratios == pytest.approx([1.0, 0.5, 0.75, 1.0])
    assert place.best == {"b": "1"} and place.best_values()[-1] == pytest.approx(0.75)


def test_best_setting_of_the_final_round_is_shown_without_a_recommendation(tmp_path):
    study, writer = begun(tmp_path / "a.tune")
    for seconds, configuration in (
        (2.0, {}), (1.9, {"a": "1"}), (1.0, {"b": "1"}), (2.0, {}), (1.9, {"a": "1"}),
    ):  # fmt: skip
        writer.run("file-system", "final", configuration, seconds=seconds, job_s=seconds)
    (place,) = figures(study).places
    assert place.best == {"a": "1"}


@pytest.mark.soak
def test_default_and_tuned_are_compared_by_their_records(whole, page):
    assert page == whole.directory / "report.html"
    beside = (whole.directory / "comparison-file-system.html").read_text()
    assert "B was 1.3 times as fast as A" in beside
    text = page.read_text()
    assert 'href="comparison-file-system.html"' in text
    assert not (whole.directory / "comparison-burst-buffer.html").exists()
    assert re.search(r"forebay report \S+/runs/00\d\d \S+/runs/00\d\d", text) and "A is run 31" in text
    assert "comparison-" not in tuning.html(whole)


@pytest.mark.parametrize("width", [400, 1200])
def test_tuning_page_works_in_a_browser(width, browser, page):
    browser.ask(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
    )  # fmt: skip
    browser.open(page)
    assert browser.evaluate(TOO_WIDE) <= 0
    headings = browser.evaluate(HEADINGS)
    assert headings[:2] == ["Result", "Lines added"]
    assert "Search, burst buffer" in headings and "Rejected" in headings
    seen = "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().height > 40).length"
    assert browser.evaluate(seen) == 2 + 2 * len(study_data.PARAMETERS)
    assert browser.evaluate("document.querySelectorAll('details').length") >= 2
    assert browser.evaluate("document.querySelector('.added').textContent")[:7] == "+export"
    browser.ask("Emulation.clearDeviceMetricsOverride")


def only_default(study, writer):
    writer.run("file-system", "default")
    return "the job takes 1.62 s as it is. Nothing is recommended."


def nothing(study, writer):
    return "Nothing has been run yet."


def default_fails(study, writer):
    writer.run(
        "burst-buffer", "default", status="failed", reason="status 3: no input", io_s=None
    )  # fmt: skip
    study.append_end("stopped", "the job fails as it is")
    return "With its burst buffer: the run failed. Status 3: no input."


def trials_fail(study, writer):
    writer.run("file-system", "default")
    study.append_plan("file-system", study_data.plan())
    for _ in range(4):
        writer.run("file-system", "search", study_data.BEST, status="failed", reason="hangs")
    return "none of the 4 runs with other settings counts. Nothing is recommended."


def interrupted(study, writer):
    writer.search("file-system", 8)
    study.append_end("interrupted", "by SIGINT")
    study_data.torn(study.directory)
    return "there is no verdict after 8 runs"


def extended(study, writer):
    """Runs beyond a verdict may contradict it: it is not told any more."""
    writer.run("file-system", "default")
    study.append_plan("file-system", study_data.plan())
    writer.run("file-system", "search", study_data.BEST)
    study.append_verdict("file-system", Verdict(recommended=study_data.BEST, reason="it was better"))
    study.append_plan("file-system", study_data.plan(runs_max=40))
    return "there is no verdict after 2 runs"


def long_names(study, writer):
    long = Parameter(
        name="/scratch/" + "very_long_name_" * 20 + "*.nc:striping", setting="striping", pattern="x", values=("v" * 200, "w"),
        ordered=False, default="d" * 100, reason="/scratch/" + "r" * 300, source="s" * 200,
    )  # fmt: skip
    writer.run("file-system", "default")
    study.append_plan("file-system", study_data.plan((long,)))
    for at in range(6):
        writer.run("file-system", "search", {long.name: long.values[at % 2]}, reason="<script>" + "x" * 200)
    return "there is no verdict after 7 runs"


ODD = [only_default, nothing, default_fails, trials_fail, interrupted, extended, long_names]


@pytest.mark.parametrize("make", few(*ODD, kept=2))
def test_odd_studies_have_a_page_and_a_summary(make, browser, tmp_path):
    study, writer = begun(tmp_path / "odd.tune", emulated=None)
    expected = make(study, writer)
    study.close()
    study = Study.open(study.directory)
    told = summary(study)
    assert expected in " ".join(told.split())
    assert len(told.splitlines()) <= 40
    browser.ask(
        "Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=True
    )  # fmt: skip
    browser.open(tuning.write_page(study.directory))
    assert browser.evaluate(TOO_WIDE) <= 0
    assert expected in browser.evaluate(TEXT).replace("\xa0", " ")
    if study.runs:
        assert "real file system" in browser.evaluate(TEXT)
    browser.ask("Emulation.clearDeviceMetricsOverride")


@pytest.mark.soak
def test_study_of_two_hundred_runs_has_a_page(tmp_path, browser):
    with study_data.whole(tmp_path / "large.tune", runs=190) as study:
        text = tuning.html(study)
    assert len(text) < 2_000_000
    page = tmp_path / "page.html"
    page.write_text(text)
    browser.open(page)
    rows = "[...document.querySelectorAll('details table')].map(t => t.tBodies[0].rows.length)"
    assert browser.evaluate(rows) == [202, 103]


@pytest.mark.soak
def test_command_accepts_the_study_directory_or_its_file(report, whole, tmp_path):
    in_directory, of_file = (
        json.loads(report(one, "--json").stdout) for one in (whole.directory, whole.directory / "study.jsonl")
    )
    assert in_directory == of_file
    assert in_directory["forebay_tuning_report"] == 1
    first, second = in_directory["places"]
    assert first["verdict"]["recommended"] == study_data.BEST and second["verdict"]["recommended"] == {}
    assert len(first["runs"]) == 32 and first["runs"][0]["ratio"] is not None


@pytest.mark.soak
def test_command_writes_summary_page_and_pdf(report, tmp_path):
    study, writer = begun(tmp_path / "a.tune")
    with study:
        writer.search("file-system", 3)
        proof = writer.final("file-system", 2)
        study.append_verdict("file-system", Verdict(recommended=study_data.BEST, reason="it was faster", pairing=proof))
        told = report(tmp_path / "a.tune", "--pdf", tmp_path / "a.pdf")
    assert told.returncode == 0, told.stderr
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "a.tune" / "report.html").is_file()
    assert re.search("file system +tuned", told.stdout)
    assert max(map(len, told.stdout.splitlines())) <= 80


@pytest.mark.soak
def test_study_cannot_be_combined_with_other_sources(report, whole, tmp_path):
    two = report(whole.directory, whole.directory)
    assert two.returncode != 0 and "stands alone" in two.stderr
    machine = report(whole.directory, "--machine", tmp_path / "none.toml")
    assert machine.returncode != 0 and "--machine tells nothing of it" in machine.stderr
    (tmp_path / "study.jsonl").write_text('{"forebay_tune": 99}\n')
    newer = report(tmp_path / "study.jsonl")
    assert newer.returncode != 0 and "format 99" in newer.stderr
    assert newer.stderr.startswith("error: ") and "Traceback" not in newer.stderr


@pytest.mark.soak
def test_missing_records_are_reported(tmp_path):
    with study_data.whole(tmp_path / "bare.tune", runs=6) as study:
        told = figures(study)
        assert "cannot be compared" in records.pair(told, told.places[0])
        for run in study.runs:
            (study.run_directory(run.number) / "script.sh").unlink()
        assert records.added_lines(told) == []
        assert "the scripts of the runs are gone" in tuning.html(study)
