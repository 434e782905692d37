"""Two jobs side by side."""

import io
import re

import pypdf
import pytest
from support.report_data import advised, file_of, html, log, profile_of, rich_profile

from forebay.profiles import metrics
from forebay.report import page
from forebay.report.assembly import job_reports
from forebay.report.charts.svg_figure import Chart
from forebay.report.comparison import compare

PAIR = ("mpiio_shared_cbdisable", "mpiio_shared_tuned")


def difference(name: str, *profiles):
    return next(one for one in compare(list(profiles)).differences if one.name == name)


def test_comparison_has_figures_and_ratios():
    first, second = map(log, PAIR)
    calls = difference("POSIX writes: calls", first, second)
    assert calls.values == [metrics.totals(one, "POSIX").write.calls for one in (first, second)]
    assert calls.values[0] == 23_040
    assert calls.ratios == [calls.values[1] / 23_040]
    assert difference("run time", first, second).values == [first.job.wall_s, second.job.wall_s]


@pytest.mark.soak
def test_most_different_counters_come_first():
    tables = compare([log(name) for name in PAIR]).tables
    counters = next(table for table in tables if table.caption.startswith("Counters"))
    names = [row[0].text for row in counters.rows]
    assert names.index("POSIX writes: calls") < names.index("MPI-IO writes: seconds, all ranks")
    assert "MPI-IO writes: calls" not in names


def test_equal_jobs_have_no_differences():
    same = log(PAIR[0])
    found = compare([same, same])
    assert [table.caption for table in found.tables] == ["What came of it"]
    assert found.verdict.startswith("No clear difference")


def test_changed_settings_are_listed():
    first, second = rich_profile(), rich_profile()
    second.programs[0].files[0].hints.environment["cb_nodes"] = "16"
    second.programs[0].files[0].stripe_count = 8
    second.job.environment["MPICH_MPIIO_HINTS"] = "*:cb_nodes=16"
    changed = [one.name for one in compare([first, second]).differences if one.kind == "setting"]
    assert changed == ["MPICH_MPIIO_HINTS", "wrfout_d01: cb_nodes", "wrfout_d01: stripes"]


@pytest.mark.soak
def test_different_programs_are_shown_separately():
    first, second = log("posix_fpp"), log("small_random")
    text = html(first, second)
    assert "These are different programs (iopat.ompi, pfpp.ompi)" in text
    assert "times as fast" not in text and "Different programs: A ran for" in text
    assert "No file was shared" in text
    assert "MPI-IO" in text


def test_one_program_in_two_scripts_is_one_program():
    file = file_of("/a", written=1, calls=1, seconds=1.0)
    pair = [profile_of(file, name=name, wall_s=wall_s) for name, wall_s in (("old.sh", 9.0), ("new.sh", 3.0))]  # fmt: skip
    compared = compare(pair)
    assert compared.notes == [] and "B was 3.0 times as fast as A" in compared.verdict


def test_variables_that_forebay_sets_are_no_difference():
    first, second = (profile_of(environment={"FOREBAY_PFS_STATE": name}) for name in "ab")
    assert [one for one in compare([first, second]).differences if one.kind == "setting"] == []


def test_compared_charts_have_equal_axes():
    """A bar of the smaller job is as much shorter than that of the larger as its figure is smaller."""
    reports = job_reports(
        [advised(profile_of(file_of("/a", written=n, calls=n, seconds=1.0))) for n in (100, 400)], None
    )
    lengths = [longest_bar_px(chart_named(report, "operations")) for report in reports]
    assert abs(lengths[1] / lengths[0] - 4) < 0.05


def chart_named(report, key: str) -> Chart:
    return next(section.charts[0] for section in report.programs[0][1] if section.key == key)


def longest_bar_px(chart: Chart) -> float:
    paths = re.findall(
        r'd="M ([\d.]+) [\d.]+\s+L ([\d.]+) [\d.]+\s+L [\d.]+ [\d.]+\s+L [\d.]+ [\d.]+\s+z', chart.on_paper()
    )
    return max(abs(float(right) - float(left)) for left, right in paths)


@pytest.mark.soak
def test_pdf_contains_both_jobs():
    profiles = [log(name) for name in PAIR]
    reports = job_reports([advised(one) for one in profiles], None)
    made = page.pdf("A and B", reports, compare(profiles), advice=True)
    pages = pypdf.PdfReader(io.BytesIO(made)).pages
    text = " ".join(page.extract_text() for page in pages)
    assert len(pages) >= 2
    assert pages[0].mediabox.width > pages[0].mediabox.height
    assert all(f"job {one.job.id}" in text for one in profiles)
    for report in reports:
        for _, sections in report.programs:
            assert all(section.name.upper() in text.upper() for section in sections)


@pytest.mark.soak
def test_pdf_has_complete_tables():
    files = [file_of(f"/scratch/file{at:03}", written=at, calls=1, seconds=200.0 - at) for at in range(120)]
    made = page.pdf("one", job_reports([advised(profile_of(*files))], None), None, advice=True)
    text = " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(made)).pages)
    missing = [file.path for file in files if file.path.rpartition("/")[2] not in re.sub(r"\s+", "", text)]
    assert missing == []
