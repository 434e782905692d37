"""Seconds of the slowest rank, as Darshan computes them: of single ranks summed per rank, else an upper bound."""

import copy

import pytest

from forebay.advice.advise import findings, paragraph
from forebay.profiles import darshan_log, metrics, time_parts
from forebay.report.verdict import verdict
from support.raw_logs import raw_profile

SHARED = -1
GIB = 1 << 30
RANKS = 4
WALL_S = 100.0


def profile_of(path, *files: dict[int, float]):
    """A log of POSIX files, each with the seconds of reading by rank; all else is nothing."""
    raw = darshan_log.read_log(path)
    module = raw.modules["POSIX"]
    one, names = module.records[0], module.counter_names
    one.counters = [0] * len(names)
    one.counters[names.index("POSIX_READS")] = 1
    one.counters[names.index("POSIX_BYTES_READ")] = 1 << 20
    module.records = []
    for number, seconds in enumerate(files):
        raw.names[number] = f"/data/{number}"
        for rank, read_s in seconds.items():
            record = copy.deepcopy(one)
            record.id, record.rank = number, rank
            times = dict.fromkeys(module.time_names, 0.0)
            times["POSIX_F_READ_TIME"] = read_s * (RANKS if rank == SHARED else 1)
            times["POSIX_F_SLOWEST_RANK_TIME"] = read_s if rank == SHARED else 0.0
            record.times = list(times.values())
            module.records.append(record)
    raw.modules, raw.wall_s, raw.ranks = {"POSIX": module}, WALL_S, RANKS
    return darshan_log.profile(path, raw)


@pytest.fixture
def log(logs):
    return logs / "posix_fpp.darshan"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("files", "slowest_s", "is_bound"),
    [
        ([{0: 20, 1: 1}, {1: 20, 2: 1}], 21, False),  # not 40: different ranks are slowest
        ([{0: 20, 1: 1}, {0: 20, 2: 1}], 40, False),
        ([{0: 10}, {1: 10}, {2: 30}], 30, False),
        ([{SHARED: 20}], 20, False),
        ([{SHARED: 20}, {SHARED: 20}], 40, True),
        ([{SHARED: 20}, {0: 20, 1: 3}], 40, True),
        ([{SHARED: 20}, {SHARED: 0.1}], 20.1, False),  # hardly more than one file's
    ],
)
def test_slowest_rank_is_summed_per_rank_or_bounded(log, files, slowest_s, is_bound):
    profile = profile_of(log, *files)
    share = metrics.io_share(profile)
    assert (share.slowest_s, share.is_bound) == (pytest.approx(slowest_s), is_bound)
    assert share.slowest == pytest.approx(slowest_s / WALL_S)
    (speed,) = (metrics.performance(program, "POSIX") for program in profile.programs)
    assert speed.seconds == pytest.approx(slowest_s)
    words = verdict(profile), paragraph(profile, findings(profile, None))
    assert all(("at most" in text) == is_bound for text in words), words
    # What is added up of several ranks says nothing about their balance.
    assert not (is_bound and "few ranks" in words[0])


def test_parts_are_those_of_the_slowest_rank(log):
    """Rank 1 reads for 30 s; the 25 s of rank 0 are not its own."""
    parts = time_parts.slowest_rank_parts(profile_of(log, {0: 25, 1: 10}, {1: 20}).programs[0])
    assert (parts.read, parts.sum()) == (pytest.approx(30), pytest.approx(30))


@pytest.mark.soak
@pytest.mark.parametrize(("seconds", "named"), [(250.0, True), (99.0, False)])
def test_more_seconds_than_the_ranks_had_are_named(log, seconds, named):
    notes = profile_of(log, dict.fromkeys(range(RANKS), seconds)).notes
    assert any("calls overlapped" in note for note in notes) == named


def mpiio(rank, *, read=0.0, write=0.0, slowest=0.0, **counters):
    times = {"F_READ_TIME": read, "F_WRITE_TIME": write, "F_SLOWEST_RANK_TIME": slowest}
    return "MPI-IO", "/lus/a.h5", rank, {"COLL_OPENS": 1} | times | counters


def posix(rank, *, read=0.0, write=0.0, slowest=0.0, **counters):
    times = {"F_READ_TIME": read, "F_WRITE_TIME": write, "F_SLOWEST_RANK_TIME": slowest}
    return "POSIX", "/lus/a.h5", rank, {"OPENS": 1} | times | counters


DIRECT = {"READS": 100_000, "BYTES_READ": 40 * GIB, "SIZE_READ_100K_1M": 100_000}


@pytest.mark.parametrize(
    ("records", "slowest_s", "activity"),
    [
        # Ranks write 8 MiB through MPI-IO, and read 40 GiB of the same file without it.
        ([mpiio(SHARED, write=0.4, slowest=0.1), posix(SHARED, read=320, write=0.3, slowest=82, **DIRECT)], 82, "read"),
        ([mpiio(rank, write=0.001) for rank in range(4)] + [posix(rank, write=70) for rank in range(4)], 70, "write"),
        # Both count where both take long.
        ([mpiio(0, write=50, COLL_WRITES=9), posix(0, write=10, read=45, **DIRECT)], 95, "read"),
        ([mpiio(SHARED, write=4, slowest=1), posix(0, write=40)], 37, "write"),
        # Below MPI-IO: exchange, reads of data sieving, seeks.
        ([mpiio(SHARED, write=200, slowest=50), posix(SHARED, write=80, slowest=20)], 50, "waiting"),
        (
            [
                mpiio(0, write=50, COLL_WRITES=9),
                posix(0, write=10, read=20, WRITES=9, READS=9, RW_SWITCHES=18, F_META_TIME=15),
            ],
            50,
            "rmw",
        ),
    ],
)
def test_system_calls_outside_mpiio_count_to_the_time_in_io(records, slowest_s, activity):
    profile = raw_profile(*records)
    assert metrics.io_share(profile).slowest_s == pytest.approx(slowest_s, rel=0.01)
    assert "did not hold this job back" not in verdict(profile)
    parts = time_parts.slowest_rank_parts(profile.programs[0])
    assert max(("write", "read", "rmw", "waiting"), key=lambda name: getattr(parts, name)) == activity
    assert metrics.slowest_files(profile, 1)[0].seconds == pytest.approx(slowest_s, rel=0.01)


def test_written_bytes_are_those_of_mpiio_where_system_calls_are_missing():
    written = {"COLL_WRITES": 80, "BYTES_WRITTEN": 8 * GIB, "COLL_READS": 80, "BYTES_READ": 8 * GIB}
    made = {"WRITES": 2, "BYTES_WRITTEN": 5 * GIB, "READS": 2, "BYTES_READ": GIB}
    (program,) = raw_profile(mpiio(SHARED, **written), posix(SHARED, **made)).programs
    # Of a block that many ranks read, the system reads one copy.
    assert [metrics.moved_bytes(program, way) for way in ("write", "read")] == [8 * GIB, GIB]


def test_shared_file_without_its_slowest_rank_counts_with_the_mean_of_the_ranks():
    log = ("STDIO", "<STDOUT>", 0, {"WRITES": 3, "F_WRITE_TIME": 0.001})
    profile = raw_profile(posix(SHARED, write=360, WRITES=4), log)
    assert verdict(profile) == "Writing took 90 % of the run time of the slowest rank, all its I/O 90 %."


@pytest.mark.parametrize("of_ranks", [True, False])
def test_negative_time_is_unknown_and_no_fast_io(of_ranks):
    times = [30, -5, 20, 10] if of_ranks else [-5]
    records = [posix(rank if of_ranks else SHARED, write=time, slowest=time) for rank, time in enumerate(times)]
    profile = raw_profile(*records)
    assert profile.unread == ["Darshan's module POSIX has negative times"]
    (file,) = profile.programs[0].files
    layer = file.layers["POSIX"]
    known = (layer.write.seconds, layer.slowest_rank_s, file.fastest and file.fastest.seconds)
    assert known == ((60, 30, 10) if of_ranks else (None, None, None))
    words = verdict(profile), paragraph(profile, findings(profile, None))
    assert all("did not hold" not in text and "nothing to gain" not in text for text in words)
    assert "How much more is not known: Darshan's module POSIX has negative times." in words[0]
