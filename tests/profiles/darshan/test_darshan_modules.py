"""Further modules of Darshan: those of DAOS are read, and what is not read makes no verdict."""

from pathlib import Path

import pytest

from forebay.advice.advise import findings, paragraph
from forebay.profiles import darshan_log, darshan_messages, metrics
from forebay.report.verdict import verdict

LABELLED = Path(__file__).parents[1] / "labelled"
DFS = LABELLED / "ior_dfs.darshan"
MIB = 1 << 20


def profile_of(raw: darshan_messages.Log):
    return darshan_log.profile(DFS, raw)


def test_file_system_of_daos_is_read():
    profile = darshan_log.read(DFS)
    (file,) = (file for file in profile.programs[0].files if "DFS" in file.layers)
    layer = file.layers["DFS"]
    for way in (layer.read, layer.write):
        assert (way.calls, way.bytes) == (64, 16 * MIB)
        assert way.sizes == [0, 0, 0, 0, 64, 0, 0, 0, 0, 0]
    assert (layer.opens, layer.stats) == (32, 0)
    assert metrics.layers_present(profile) == ["POSIX", "STDIO", "DFS"]
    assert metrics.io_share(profile).slowest == pytest.approx(0.09, abs=0.005)
    assert "nothing to gain" not in paragraph(profile, findings(profile, None))
    assert profile.unread == []


def test_objects_of_daos_are_read_where_nothing_above_them_is():
    raw = darshan_log.read_log(DFS)
    del raw.modules["DFS"]
    profile = profile_of(raw)
    assert "DAOS" in metrics.layers_present(profile) and profile.unread == []
    totals = metrics.totals(profile, "DAOS")
    assert (totals.read.bytes, totals.write.bytes) == (16 * MIB + 88 + 440, 16 * MIB + 88)
    assert (totals.read.calls, totals.write.calls) == (64 + 2 + 5, 64 + 1)


@pytest.mark.soak
def test_objects_of_daos_below_mpi_io_are_not_counted_again(logs):
    raw = darshan_log.read_log(logs / "mpiio_shared_default.darshan")
    raw.modules["DAOS"] = darshan_log.read_log(DFS).modules["DAOS"]
    profile = profile_of(raw)
    assert "DAOS" not in metrics.layers_present(profile) and profile.unread == []


def module(**values) -> darshan_messages.Module:
    return darshan_messages.Module(version=1, partial=False, **values)


@pytest.mark.parametrize(
    ("name", "found", "reason"),
    [
        ("MDHIM", module(), "Darshan's module MDHIM is not read"),
        ("number 20", module(), "Darshan's module number 20 is not read"),
        ("H5D", module(), None),
        ("PNETCDF_VAR", module(), None),
        ("BG/Q", module(), None),
        ("APMPI-PERF", module(), None),
        ("STDIO", module(lost="module version number 9"), "Darshan's module STDIO has a version that is not read"),
    ],
)
def test_data_that_are_not_read_are_named(logs, name, found, reason):
    raw = darshan_log.read_log(logs / "posix_fpp.darshan")
    raw.modules[name] = found
    assert profile_of(raw).unread == ([reason] if reason else [])


def test_library_above_modules_that_are_missing_is_named(logs):
    """HDF5 can store in DAOS without any other module."""
    raw = darshan_log.read_log(logs / "posix_fpp.darshan")
    raw.modules = {"H5D": module()}
    assert profile_of(raw).unread == ["Darshan's module H5D is not read"]


@pytest.mark.soak
@pytest.mark.parametrize("unread", [True, False])
def test_little_io_is_nothing_to_gain_only_where_all_data_are_read(logs, unread):
    raw = darshan_log.read_log(logs / "posix_fpp.darshan")
    raw.wall_s *= 10_000
    raw.modules["POSIX"].partial = unread
    profile = profile_of(raw)
    found = findings(profile, None)
    words = f"{verdict(profile)} {paragraph(profile, found)} {' '.join(one.title for one in found)}"
    assert ("nothing to gain" in words or "did not hold this job back" in words) == (not unread)
    assert words.count("How much more is not known: Darshan's module POSIX is incomplete.") == (2 if unread else 0)
    assert ("little-io" in [one.code for one in found]) == (not unread)


def test_log_tells_its_formats_and_which_modules_were_read(logs):
    raw = darshan_log.read_log(logs / "mpiio_shared_default.darshan")
    raw.modules |= {"MDHIM": module(), "H5D": module(lost="H5D module version number is newer")}
    raw.modules["STDIO"].partial = True
    log = profile_of(raw).programs[0].log
    assert (log.version, log.writer) == ("3.41", "Darshan 3.5.0")
    states = {one.name: (one.version, one.complete, one.read) for one in log.modules}
    assert states["POSIX"] == (4, True, True) and states["STDIO"] == (2, False, True)
    assert states["MDHIM"] == (1, True, False) and states["H5D"] == (1, True, False)


def test_log_without_the_version_of_its_library_has_no_writer():
    raw = darshan_log.read_log(DFS)
    raw.metadata = ""
    assert profile_of(raw).programs[0].log.writer is None
