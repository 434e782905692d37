"""HDF5 and PnetCDF in Darshan logs: datasets, variables and files, joined over ranks."""

import pytest

from forebay.profiles import darshan_libraries, darshan_log
from support.labelled import log_file
from support.labelled.recorder import Run


def dataset(path, rank, **counters):
    return "H5D", path, rank, counters


@pytest.fixture
def log(tmp_path):
    """A file of two ranks with a dataset written collectively, and one read by rank 1 alone."""
    run = Run(2)
    for rank in range(2):
        run.open(rank, "/s/a.h5")
        run.move(rank, "/s/a.h5", "WRITE", 1 << 20, 0.01)
    records = [
        dataset("/s/a.h5:/t", -1, OPENS=2, WRITES=6, BYTES_WRITTEN=6000, USE_MPIIO_COLLECTIVE=1, F_WRITE_TIME=1.5),
        dataset("/s/a.h5:/u", 0, OPENS=1, READS=1, BYTES_READ=10, F_READ_TIME=0.25),
        dataset("/s/a.h5:/u", 1, OPENS=1, READS=2, BYTES_READ=20, F_READ_TIME=0.25),
    ]
    return log_file.write(run, tmp_path / "h5.darshan", libraries=records)


def test_datasets_are_joined_over_ranks(log):
    (program,) = darshan_log.read(log).programs
    assert program.libraries == ["HDF5"]
    found = {one.path: one for one in program.objects}
    first, second = found["/s/a.h5:/t"], found["/s/a.h5:/u"]
    assert (first.kind, first.writes, first.collective, first.written_bytes, first.write_s) == (
        "dataset",
        6,
        6,
        6000,
        1.5,
    )
    assert (second.reads, second.collective, second.read_bytes, second.read_s) == (3, 0, 30, 0.5)
    assert first.wait_s is None


def test_data_of_libraries_are_not_counted_twice(log):
    profile = darshan_log.read(log)
    assert not profile.unread and not any("H5D" in note for note in profile.notes)
    assert {name for file in profile.programs[0].files for name in file.layers} == {"POSIX"}


def test_every_sum_has_its_counters():
    """A misspelt counter would be a figure that is never known."""
    from darshan.backend import cffi_backend as darshan

    known = {
        name.removeprefix(f"{module}_")
        for module in darshan_libraries.MODULES
        for name in darshan.counter_names(module) + darshan.fcounter_names(module)
    }
    asked = {name for names in darshan_libraries.SUMS.values() for name in names}
    assert asked | {darshan_libraries.COLLECTIVE} <= known
