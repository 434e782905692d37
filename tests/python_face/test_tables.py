"""Tables of a record: pandas frames with the figures of its report."""

import re
import sys

import pandas
import pytest
from support.report_data import LOGS, file_of, profile_of, rich_profile

import forebay
from forebay import tables
from forebay.profiles import metrics
from forebay.profiles.model import Layer, Traffic
from forebay.profiles.sources import open_path
from support.labelled.cases import TESTS

PAGE = TESTS.parent / "docs" / "reference" / "python.md"
LOG = LOGS / "mpiio_shared_cbdisable.darshan"


def record_of(path):
    """A record whose profile is in this file."""
    return forebay.Record(path, "1", "profile", "ended", None, (), "host", 0.0, None, None, {})


def test_files_and_programs_have_the_figures_of_the_report():
    profile, record = open_path(LOG), record_of(LOG)
    files, programs = record.files(), record.programs()
    assert len(files) == sum(len(file.layers) for program in profile.programs for file in program.files)
    for layer in metrics.layers_present(profile):
        totals, rows = metrics.totals(profile, layer), files[files.layer == layer]
        assert rows.written_bytes.sum() == totals.write.bytes > 0
        assert rows.writes.sum() == totals.write.calls and rows.opens.sum() == totals.opens
        assert rows.write_s.sum() == pytest.approx(totals.write.seconds)
    (only,) = programs.to_dict("records")
    assert only["ranks"] == profile.programs[0].ranks and only["io_s"] == metrics.io_s(profile.programs[0])
    assert only["written_bytes"] == metrics.moved_bytes(profile.programs[0], "write")


def test_over_time_sums_the_ranks_of_each_span():
    profile = rich_profile()
    table = tables.over_time(profile)
    assert table.groupby("layer").size().to_dict() == {"MPI-IO": 128, "POSIX": 128}
    for heat in profile.programs[0].heat:
        rows = table[table.layer == heat.layer]
        assert rows.written_bytes.sum() == sum(map(sum, heat.write)) and rows.read_bytes.sum() == 0
        assert rows.written_bytes.iloc[3] == sum(row[3] for row in heat.write)
        assert rows.begin_s.iloc[3] == pytest.approx(0.3) and rows.end_s.iloc[3] == pytest.approx(0.4)


def test_over_time_without_heat_map_is_empty_with_all_columns():
    table = tables.over_time(profile_of(file_of("/a", written=1)))
    assert len(table) == 0 and list(table.columns) == list(tables.OVER_TIME)


def test_unknown_figures_are_missing_and_integers_exact():
    exact = file_of("/a", written=2**60 + 1, calls=3)
    unknown = file_of("/b\udcff")
    unknown.layers = {"STDIO": Layer(read=Traffic(), write=Traffic())}
    table = tables.files(profile_of(exact, unknown))
    assert table.written_bytes.iloc[0] == 2**60 + 1 and pandas.isna(table.written_bytes.iloc[1])
    assert pandas.isna(table.name_calls).all() and pandas.isna(table.write_s.iloc[1])
    assert list(table.path) == ["/a", "/b\udcff"]
    assert [str(kind) for kind in table.dtypes] == list(tables.FILES.values())


def test_tables_without_pandas_fail_with_an_error_that_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(forebay.PackageNotInstalledError, match="pandas") as caught:
        record_of(LOG).files()
    assert isinstance(caught.value, ImportError) and caught.value.hint.endswith("pip install pandas")


def test_example_of_the_documentation_prints_the_files_of_the_last_job(here, capsys):
    (example,) = re.findall(r"^```python\n(.*?files\(\).*?)^```", PAGE.read_text().split("### Tables")[1], re.M | re.S)
    directive = "#DW jobdw type=scratch access_mode=striped capacity=16MiB"
    here.script("dd if=/dev/zero of=$DW_JOB_STRIPED/made bs=1M count=3", directive)
    forebay.run("job.sh", store=here.store)
    exec(example, {})
    printed = capsys.readouterr().out
    assert re.search(r"3 +3145728 +[\d.]+ .*/made$", printed, re.M) and "most in one span:" in printed
