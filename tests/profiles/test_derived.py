"""Figures that follow from profiles: against what the genuine logs hold, and by hand."""

import msgspec
import pytest

from support import record_data
from forebay.profiles import metrics, time_parts
from forebay.profiles.errors import ProfileError
from forebay.profiles.machine import read_machine
from forebay.profiles.model import File, Job, Layer, Profile, Program, Traffic
from forebay.report.verdict import verdict
from support.mpi import PROJECT


def file_of(path, seconds, moved, *, ranks, rank=None, slowest_s=None):
    write = Traffic(calls=1, bytes=moved, seconds=seconds)
    layer = Layer(read=Traffic(calls=0, bytes=0, seconds=0.0), write=write, slowest_rank_s=slowest_s)
    return File(path=path, layers={"POSIX": layer}, ranks=ranks, rank=rank)


def profile_of(*files, ranks=4, wall_s=10.0, **members):
    program = Program(files=list(files), ranks=ranks, wall_s=wall_s, **members)
    return Profile(source="forebay", path="x", job=Job(), programs=[program])


def test_totals_of_real_logs_are_correct():
    default, disabled = (record_data.log("mpiio_shared_default"), record_data.log("mpiio_shared_cbdisable"))
    assert metrics.layers_present(default) == ["MPI-IO", "POSIX", "STDIO"]
    assert metrics.totals(default, "MPI-IO").write.collective == 20
    assert metrics.totals(default, "POSIX").write.calls == 5
    assert metrics.totals(disabled, "POSIX").write.calls == 23040
    assert metrics.totals(disabled, "POSIX").write.bytes == metrics.totals(disabled, "MPI-IO").write.bytes == 22118400
    assert sum(metrics.totals(disabled, "POSIX").write.sizes) == 23040
    assert metrics.totals(disabled, "POSIX").write.common_sizes[0] == (960, 23040)


def test_file_counts_of_a_real_log_are_correct():
    counts = {count.kind: count for count in metrics.file_counts(record_data.log("posix_fpp"), "POSIX")}
    assert (counts["total"].number, counts["read/write"].number, counts["read-only"].number) == (4, 4, 0)
    assert counts["total"].average_bytes == counts["total"].largest_bytes == 33554432


@pytest.mark.soak
@pytest.mark.parametrize("name", ["mpiio_shared_default", "mpiio_shared_cbdisable", "small_random", "posix_fpp"])
def test_throughput_equals_that_of_darshan(name):
    """`agg_perf_by_slowest`, as the package computes it."""
    darshan = pytest.importorskip("darshan")
    from darshan.backend.cffi_backend import accumulate_records

    report = darshan.DarshanReport(str(record_data.LOGS / f"{name}.darshan"), read_all=True)
    program = record_data.log(name).programs[0]
    for layer in metrics.layers_present(record_data.log(name)):
        table = report.records[layer].to_df()
        theirs = accumulate_records(table, layer, program.ranks).derived_metrics.agg_perf_by_slowest
        ours = metrics.performance(program, layer).bytes_per_s / 2**20
        assert ours == pytest.approx(theirs, rel=0.01), layer


def test_throughput_adds_own_files_by_rank_and_shared_files_one_after_the_other():
    files = [file_of(f"/{n}", 1.0, 100, ranks=1, rank=n % 2) for n in range(5)]  # rank 0: 3 s, rank 1: 2 s
    shared = [file_of(f"/s{n}", 8.0, 1000, ranks=4, slowest_s=2.5) for n in range(2)]
    found = metrics.performance(profile_of(*files, *shared).programs[0], "POSIX")
    assert found.seconds == pytest.approx(3.0 + 5.0)
    assert found.bytes_per_s == pytest.approx(2500 / 8.0)


def test_own_files_of_unknown_ranks_count_as_spread_evenly_with_a_note():
    found = metrics.performance(profile_of(file_of("/a", 8.0, 100, ranks=1)).programs[0], "POSIX")
    assert found.seconds == pytest.approx(2.0) and "spread evenly" in found.how


def test_io_share_counts_each_file_at_the_layer_it_was_called_through():
    file = file_of("/a", 4.0, 100, ranks=4, slowest_s=2.0)
    file.layers["MPI-IO"] = Layer(
        read=Traffic(), write=Traffic(seconds=12.0, slowest_rank_s=4.0, data_s=4.0, rest_s=8.0), metadata_s=0.0
    )
    profile = profile_of(file)
    share = metrics.io_share(profile)
    assert (share.average, share.slowest) == (pytest.approx(0.3), pytest.approx(0.4))
    upper, lower = time_parts.time_split(profile.programs[0])
    assert (upper.layer, upper.write_s, upper.data_s, upper.exchange_s, upper.other_s) == ("MPI-IO", 3.0, 1.0, 2.0, 7.0)
    assert (lower.layer, lower.write_s, lower.other_s) == ("POSIX", 1.0, 9.0)
    assert upper.share(upper.write_s) == pytest.approx(0.3)


def test_totals_of_the_source_precede_sums_over_files():
    profile = profile_of(file_of("/a", 4.0, 100, ranks=4, slowest_s=2.0), io_s=20.0, io_slowest_rank_s=6.0)
    share = metrics.io_share(profile)
    assert (share.average, share.slowest) == (pytest.approx(0.5), pytest.approx(0.6))


def test_shares_never_exceed_the_run():
    assert metrics.io_share(profile_of(file_of("/a", 90.0, 1, ranks=4, slowest_s=99.0))).slowest == 1.0


def test_slowest_files_are_ranked():
    profile = profile_of(*(file_of(f"/{n}", float(n), 1, ranks=1, rank=0) for n in range(10)))
    assert [(slow.file.path, slow.seconds) for slow in metrics.slowest_files(profile, 2)] == [("/9", 9.0), ("/8", 8.0)]


def test_stripe_share_is_computed():
    assert metrics.stripe_share(Traffic(calls=762, stripe_sized=108)) == pytest.approx(0.1417, abs=1e-4)
    assert metrics.stripe_share(Traffic(calls=0, stripe_sized=0)) is None
    assert metrics.stripe_share(Traffic(calls=5)) is None


def test_efficiency_against_a_machine_is_computed():
    machine = read_machine(PROJECT / "machines" / "lustre-small.toml")
    assert machine.peak_bytes_per_s == 8 * 62.5e6
    found = metrics.efficiency(profile_of(file_of("/a", 4.0, 10**9, ranks=4, slowest_s=4.0)), machine)
    assert found.share == pytest.approx(0.25e9 / 500e6)
    assert metrics.efficiency(profile_of(), machine) is None


@pytest.mark.parametrize(
    "text, said",
    [
        ("name = ", "Invalid value"),
        ('name = "x"', "missing"),
        ('name = "x"\n[targets]\ncount = {value = "many"}', "many"),
    ],
)
def test_invalid_machine_files_are_refused(tmp_path, text, said):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(ProfileError, match=said) as raised:
        read_machine(path)
    assert raised.value.hint
    with pytest.raises(ProfileError, match="No such file"):
        read_machine(tmp_path / "none.toml")


def test_unknown_stays_unknown():
    nothing = profile_of(File(path="/a", layers={"POSIX": Layer(read=Traffic(), write=Traffic())}))
    totals = metrics.totals(nothing, "POSIX")
    assert msgspec.to_builtins(totals.read)["bytes"] is None and totals.opens is None
    assert metrics.performance(nothing.programs[0], "POSIX") is None
    assert metrics.io_share(nothing).slowest is None
    assert metrics.slowest_files(nothing, 5) == []
    assert metrics.file_counts(nothing, "POSIX")[0].largest_bytes is None


def test_programs_at_the_same_time_share_the_time():
    def program(started, wall, spent):
        return Program(files=[], ranks=1, started_unix_s=started, wall_s=wall, io_s=spent, io_slowest_rank_s=spent)

    def slowest_s(*programs):
        profile = Profile(source="forebay", path="x", job=Job(wall_s=20.0), programs=list(programs))
        return metrics.io_share(profile).slowest_s

    first, later, beside = program(100.0, 10.0, 2.0), program(120.0, 4.0, 3.0), program(105.0, 10.0, 5.0)
    assert slowest_s(first, later) == 5.0
    assert slowest_s(first, beside) == pytest.approx(6.0)  # 5 s at 0.2, 10 s at 0.5
    assert slowest_s(*[first] * 3) == pytest.approx(2.0)


def test_parts_of_programs_at_the_same_time_are_no_more_than_all_their_io():
    """Four workers write for 3 s of the same 10 s."""
    worker = profile_of(file_of("/a", 3.0, 100, ranks=1, rank=0), ranks=1, started_unix_s=100.0).programs[0]
    profile = Profile(source="forebay", path="x", job=Job(wall_s=10.0), programs=[worker] * 4)
    assert verdict(profile) == "Writing took 30 % of the run time of the slowest rank, all its I/O 30 %."


def test_slowest_rank_includes_the_wait_for_the_writer():
    """One of four ranks writes for 3 s while the others wait for it: 3 s of writing, not of exchange."""
    file = file_of("/a", 3.0, 100, ranks=4)
    file.layers["MPI-IO"] = Layer(
        read=Traffic(),
        write=Traffic(
            seconds=16.0,
            slowest_rank_s=4.0,
            data_s=3.0,
            rest_s=12.0,
            other_system_s=1.0,
            slowest_rank_data_s=3.0,
            slowest_rank_other_s=0.5,
        ),
        metadata_s=2.0,
        metadata_slowest_rank_s=1.0,
        sync_s=1.0,
        sync_slowest_rank_s=1.0,
    )
    profile = profile_of(file, io_s=19.0, io_slowest_rank_s=6.0)
    parts = time_parts.slowest_rank_parts(profile.programs[0])
    told = (parts.write, parts.read, parts.waiting, parts.metadata, parts.sync)
    assert told == pytest.approx((3.0, 0.0, 0.5, 1.5, 1.0))
    mean = time_parts.time_split(profile.programs[0])[0].parts
    assert (mean.write, mean.waiting, mean.metadata) == pytest.approx((0.75, 3.0, 0.75))
    assert metrics.performance(profile.programs[0], "MPI-IO") is None


def test_exchange_of_a_darshan_log_is_the_time_above_the_system_calls():
    program = record_data.log("mpiio_shared_default").programs[0]
    upper = time_parts.time_split(program)[0]
    below = next(file for file in program.files if "MPI-IO" in file.layers).layers["POSIX"]
    assert upper.exchange_s == pytest.approx(upper.write_s - below.write.seconds / program.ranks)
    parts = time_parts.slowest_rank_parts(program)
    assert parts.sum() == pytest.approx(metrics.io_slowest_s(program))
    # The aggregator's 8.2 ms in system calls are the others' waiting.
    assert parts.write == pytest.approx(below.slowest_rank_s, rel=0.01)


def test_throughput_counts_no_more_time_than_any_rank_spent():
    shared = [file_of(f"/s{n}", 8.0, 1000, ranks=4, slowest_s=2.5) for n in range(2)]
    found = metrics.performance(profile_of(*shared, io_slowest_rank_s=4.0).programs[0], "POSIX")
    assert found.seconds == 4.0


def test_syncing_is_part_of_the_slowest_rank():
    file = file_of("/a", 4.0, 100, ranks=4)
    layer = file.layers["POSIX"]
    layer.write.slowest_rank_s, layer.sync_slowest_rank_s = 1.0, 2.0
    assert metrics.slowest_rank_s(file, layer) == 3.0
