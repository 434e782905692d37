"""Seconds of the slowest rank, as Darshan computes them: of single ranks summed per rank, else an upper bound."""

import copy

import pytest

from forebay.advice.advise import findings, paragraph
from forebay.profiles import darshan_log, metrics, time_parts
from forebay.report.verdict import verdict

SHARED = -1
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
