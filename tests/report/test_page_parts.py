"""Parts of the page: what a finding is about, the uppermost layer, mount points, libraries, one scale."""

import re

import msgspec
import pytest
from support.report_data import file_of, html, html_of_log, log, profile_of, shown

from forebay import quantities
from forebay.advice.model import Finding
from forebay.profiles.model import File, Layer, LibraryObject, Traffic
from forebay.profiles.sources import open_path
from forebay.report.assembly import Advised, job_reports
from forebay.report.sections import files, libraries, log_modules, mounts, sizes, targets, throughput, time_spent
from forebay.report.sections.context import SectionContext
from support.labelled.cases import TESTS

STRIPS = """[...document.querySelectorAll('.finding .strip')].map(strip => ({
  about: strip.getAttribute('aria-label'),
  on: [...strip.querySelectorAll('.on')].map(part => part.getBoundingClientRect().width),
  all: [...strip.children].map(part => part.getBoundingClientRect().width),
  width: strip.getBoundingClientRect().width,
}))"""


def scene(profile):
    return SectionContext(profile, profile.programs[0])


def traffic(calls, moved, seconds):
    return Traffic(calls=calls, bytes=moved, seconds=seconds)


def mixed():
    """1 KiB through MPI-IO, 8 GiB through POSIX."""
    none = traffic(0, 0, 0.0)
    small = Layer(read=none, write=traffic(1, 1024, 0.1))
    return profile_of(
        File(path="/s/header", ranks=4, layers={"MPI-IO": small}),
        file_of("/s/data", written=8 << 30, calls=8, seconds=20.0),
    )


def test_headlines_are_about_the_layer_that_moved_most():
    profile = mixed()
    assert throughput.section(scene(profile)).title.startswith("POSIX moved 8 GiB")
    assert " in POSIX, most of it in writing" in time_spent.section(scene(profile)).title


@pytest.mark.soak
def test_headlines_of_a_daos_run_are_about_its_interface():
    profile = open_path(TESTS / "profiles" / "labelled" / "ior_dfs.darshan")
    assert throughput.section(scene(profile)).title.startswith("DFS moved 32 MiB")
    assert " in DFS, " in time_spent.section(scene(profile)).title


def test_finding_marks_the_part_of_the_bar_that_it_is_about(browser, tmp_path):
    (strip,) = shown(browser, tmp_path, html_of_log("mpiio_shared_cbdisable")).evaluate(STRIPS)
    assert "writing, exchange, waiting: 77 % of the run time" in strip["about"]
    assert sum(strip["on"]) == pytest.approx(0.77 * strip["width"], rel=0.02)
    assert len(strip["all"]) > len(strip["on"])


@pytest.mark.soak
def test_finding_about_no_part_has_no_bar(browser, tmp_path):
    note = Finding(
        code="little-io", level="note", title="t", file=None, evidence=(), rule="r", source="s", action="a", parts=()
    )
    (report,) = job_reports([Advised(log("posix_fpp"), "v", "p", [note])], None)
    from forebay.report import page

    shown(browser, tmp_path, page.html("t", [report], None, advice=True))
    assert browser.evaluate("document.querySelectorAll('.finding').length") == 1
    assert browser.evaluate(STRIPS) == []


@pytest.mark.soak
def test_compared_jobs_have_bars_on_one_scale_first(browser, tmp_path):
    """A took 48.8 ms, B 26.1 ms."""
    text = html(log("mpiio_shared_cbdisable"), log("mpiio_shared_tuned"))
    shown(browser, tmp_path, text)
    captions = browser.evaluate("[...document.querySelectorAll('figcaption')].map(c => c.textContent)")
    assert captions[0] == "Where the time of the slowest rank went, in seconds"
    assert "Where the time went: share of the run time" not in captions
    top = browser.evaluate("document.querySelector('figure').getBoundingClientRect().bottom")
    assert top < 500
    about = browser.evaluate("document.querySelector('figure svg desc').textContent")
    assert about.startswith("A: writing 36.1 ms") and "B: writing 7.03 ms" in about


def test_mount_points_have_their_share():
    files = [file_of(f"/scratch/{n}", written=3 << 30, calls=1, seconds=1.0) for n in range(3)]
    for file in files:
        file.mount, file.file_system = "/scratch", "lustre"
    files.append(file_of("<STDOUT>", written=1000, calls=1, seconds=0.0))
    files.append(file_of("/home/x", written=1 << 30, calls=1, seconds=1.0))
    files[-1].mount, files[-1].file_system = "/home", "nfs"
    section = mounts.section(scene(profile_of(*files)))
    assert section.title == "90 % of 10 GiB went to or came from /scratch (lustre)."
    assert [[cell.text for cell in row] for row in section.tables[0].rows] == [
        ["/scratch", "lustre", "3", "9 GiB", "0 B", "90 %"],
        ["/home", "nfs", "1", "1 GiB", "0 B", "10 %"],
    ]


def test_unknown_mount_points_have_no_section():
    assert mounts.section(scene(profile_of(file_of("/s/a", written=1 << 20, calls=1, seconds=1.0)))) is None


def test_library_has_a_section_with_its_datasets():
    profile = profile_of(file_of("/s/a.h5", written=1 << 20, calls=1, seconds=1.0))
    assert libraries.of_library("HDF5")(scene(profile)) is None
    profile.programs[0].objects = [
        LibraryObject(library="HDF5", kind="file", path="/s/a.h5", opens=4, metadata_s=0.5),
        LibraryObject(
            library="HDF5",
            kind="dataset",
            path="/s/a.h5:/t",
            reads=0,
            writes=8,
            collective=8,
            read_bytes=0,
            written_bytes=1 << 20,
            write_s=2.0,
        ),
    ]
    section = libraries.of_library("HDF5")(scene(profile))
    assert section.title == "HDF5 wrote 1 MiB and read 0 B, in 1 dataset and 1 file."
    first = [cell.text for cell in section.tables[0].rows[0]]
    assert first == ["/s/a.h5:/t", "dataset", "1 MiB", "8", "0 B", "0", "100 %", "2 s"]
    assert libraries.of_library("PnetCDF")(scene(profile)) is None


@pytest.mark.soak
def test_files_of_pnetcdf_in_a_genuine_log_are_shown():
    profile = open_path(TESTS / "report" / "labelled" / "e3sm_io_heatmap_only.darshan")
    section = libraries.of_library("PnetCDF")(scene(profile))
    assert section.title == "PnetCDF had 3 files. The log does not tell how much they moved."
    assert not any("PNETCDF" in note for note in profile.notes)


@pytest.mark.soak
def test_empty_classes_of_sizes_are_left_out():
    profile = profile_of(file_of("/s/a", written=1 << 20, calls=8, seconds=1.0))
    profile.programs[0].files[0].layers["POSIX"].write.sizes = [0, 3, 0, 5, 0, 0, 0, 0, 0, 0]
    section = sizes.section(scene(profile))
    assert [row[0].text for row in section.tables[0].rows] == ["101-1K", "10K-100K"]
    assert section.tables[0].charted


@pytest.mark.soak
@pytest.mark.parametrize("paper", [False, True])
def test_tables_of_what_a_chart_shows_are_folded_or_not_printed(paper, browser, tmp_path):
    shown(browser, tmp_path, html(log("posix_fpp"), paper=paper))
    folded = browser.evaluate("[...document.querySelectorAll('details > summary')].map(s => s.textContent)")
    captions = browser.evaluate("[...document.querySelectorAll('caption')].map(c => c.textContent)")
    charted = {"Calls by size", "Calls of all ranks"}
    assert charted & set(captions) == (set() if paper else charted)
    assert charted <= set(folded) or paper


@pytest.mark.soak
def test_storage_targets_are_shown_slowest_first():
    profile = open_path(TESTS / "report" / "labelled" / "sample-badost.darshan")
    section = targets.section(scene(profile))
    assert section.title == (
        "Files on target 14 took longest: 9 min 06 s on average, against 11 s on the median one of 24 targets."
    )
    assert [row[0].text for row in section.tables[0].rows][0] == "14" and len(section.tables[0].rows) == 24


@pytest.mark.soak
def test_files_on_all_targets_tell_nothing_of_one():
    file = file_of("/l/wide", written=1 << 30, calls=1, seconds=1.0)
    file.targets = [0, 1, 2, 3]
    assert targets.section(scene(profile_of(file))) is None


def test_columns_that_no_file_or_layer_fills_are_left_out():
    profile = profile_of(file_of("/s/a", written=1 << 20, calls=8, seconds=1.0))
    names = {column.name for column in files.section(scene(profile)).tables[-1].columns}
    assert {"file", "slowest rank", "written"} <= names and not {"stripes", "slowest / fastest", "usual size"} & names
    assert [column.name for column in time_spent.section(scene(profile)).tables[0].columns] == [
        "layer", "writing", "no I/O here",
    ]  # fmt: skip


def test_usual_size_is_that_of_most_calls():
    profile = profile_of(file_of("/s/a", written=10 << 20, calls=10, seconds=1.0))
    write = profile.programs[0].files[0].layers["POSIX"].write
    write.sizes, write.common_sizes = [8, 0, 0, 0, 0, 2, 0, 0, 0, 0], [(64, 8), (5 << 20, 2)]
    table = files.section(scene(profile)).tables[-1]
    at = [column.name for column in table.columns].index("usual size")
    assert table.rows[0][at].text == "64 B"


def test_modules_of_a_log_are_shown_with_their_versions():
    profile = msgspec.convert(msgspec.to_builtins(log("mpiio_shared_default")), type(log("mpiio_shared_default")))
    modules = profile.programs[0].log.modules
    modules[1].complete, modules[2].read = False, False
    section = log_modules.section(scene(profile))
    assert section.title == "Darshan 3.5.0 wrote 6 modules in log format 3.41."
    rows = [[cell.text for cell in row] for row in section.tables[0].rows]
    assert rows[:3] == [["POSIX", "4", "read"], ["MPI-IO", "3", "read; incomplete"], ["STDIO", "2", "not read"]]


def test_source_that_is_no_darshan_log_has_no_section_of_modules():
    assert log_modules.section(scene(mixed())) is None


def test_line_of_the_verdict_ends_in_no_number_before_its_percent_sign():
    page = html_of_log("mpiio_shared_cbdisable")
    (verdict,) = re.findall(r'<p class="verdict">(.*?)</p>', page)
    assert "\N{NO-BREAK SPACE}%" in verdict and " %" not in verdict


def test_counter_of_one_has_its_unit_in_the_singular():
    shown = [quantities.plain(*value) for value in ((1, "ranks"), (2, "ranks"), (1, "calls"), (1, "s"), (1, ""))]
    assert shown == ["1 rank", "2 ranks", "1 call", "1 s", "1"]
