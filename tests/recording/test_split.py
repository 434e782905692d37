"""Split collective calls are collective calls."""

from support.mpi import only_file


def test_split_write_counts_as_one_call_of_one_aggregator(mpi, tmp_path):
    report, _ = mpi.report(2, mpi.observed(), "split", tmp_path / "f", MPICH_MPIIO_HINTS="*:romio_cb_write=enable")
    writes = only_file(report)["write"]
    assert writes["calls"]["split_collective"] == 2
    assert (writes["aggregators"], writes["aggregators_active"]) == (1, [1, 0, 0, 0])
