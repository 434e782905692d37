"""Advice about ranks, storage targets and metadata: right where something is wrong, silent where nothing is."""

import pytest
from support.advice_data import codes, local, only, profile_of, shared
from forebay.profiles.model import Extreme, RankSeconds

RANKS = 64


def striped(slow=(), rank_s=1.0, ranks=RANKS, targets=8, moved=1 << 30):
    """A file for each rank, each on one of the targets; those on `slow` take ten times as long."""
    return [
        local(f"/l/f.{rank}", moved=moved, seconds=rank_s * (10 if rank % targets in slow else 1), rank=rank)
        for rank in range(ranks)
    ]


def on_targets(files, targets=8):
    for file in files:
        file.targets = [file.rank % targets]
    return files


def test_slow_storage_target_is_named():
    found = only(profile_of(*on_targets(striped({3})), ranks=RANKS), "slow-target")
    assert "storage target 3 take 10 s" in found.title and "other 7 take 1 s" in found.title
    assert found.seconds == pytest.approx(9.0)


def test_even_storage_targets_get_no_advice():
    assert codes(profile_of(*on_targets(striped(rank_s=20.0)), ranks=RANKS)) == []


def test_target_with_more_bytes_is_not_slow():
    """Its files are ten times as large and take ten times as long."""
    files = on_targets(striped({3}))
    for file in files:
        file.layers["POSIX"].write.bytes = (10 if file.rank % 8 == 3 else 1) << 30
    assert "slow-target" not in codes(profile_of(*files, ranks=RANKS))


def test_small_files_and_inputs_tell_nothing_of_a_target():
    """On target 3: files of 1 KiB that take as long as the others' 1 GiB; and files that are only read, slowly."""
    files = on_targets(striped(rank_s=5.0))
    for number in range(8):
        files += [local(f"/l/tiny.{number}", moved=1024, seconds=5.0, rank=number)]
        files += [local(f"/l/in.{number}", moved=1 << 24, seconds=5.0, rank=number, read=True)]
        files[-1].targets = files[-2].targets = [3]
    assert "slow-target" not in codes(profile_of(*files, ranks=RANKS))


def test_half_of_the_targets_is_not_named_slow():
    assert "slow-target" not in codes(profile_of(*on_targets(striped({1, 3, 5, 7})), ranks=RANKS))


def test_straggler_is_named_with_its_rank():
    files = striped(rank_s=5.0)
    files[17].layers["POSIX"].write.seconds = 40.0
    found = only(profile_of(*files, ranks=RANKS), "straggler")
    assert found.title.startswith("Rank 17 ") and found.seconds == pytest.approx(35.0)


def test_rank_with_more_bytes_is_no_straggler():
    files = striped(rank_s=5.0)
    files[17].layers["POSIX"].write.seconds, files[17].layers["POSIX"].write.bytes = 40.0, 8 << 30
    assert "straggler" not in codes(profile_of(*files, ranks=RANKS))


def test_rank_with_many_more_calls_is_no_straggler():
    files = striped(rank_s=5.0)
    files[0].layers["POSIX"].write.seconds, files[0].layers["POSIX"].write.calls = 40.0, 500_000
    assert "straggler" not in codes(profile_of(*files, ranks=RANKS))


def test_straggler_that_costs_little_is_at_most_a_note():
    files = striped(rank_s=0.1)
    files[17].layers["POSIX"].write.seconds = 1.6
    files.append(local("/l/other", moved=1 << 30, seconds=20.0 * RANKS, ranks=RANKS))
    files[-1].layers["POSIX"].slowest_rank_s = 20.0
    assert only(profile_of(*files, ranks=RANKS), "straggler").level == "note"


@pytest.mark.parametrize(("moved", "is_found"), [(1 << 20, True), (1 << 27, False)])
def test_straggler_of_a_shared_file_is_named(moved, is_found):
    """64 ranks move 1 MiB each; rank 9 takes 40 s and the others 1 s."""
    file = local("/l/shared", calls=6400, moved=64 << 20, seconds=103.0, ranks=RANKS)
    file.slowest = Extreme(rank=9, seconds=40.0, bytes=moved)
    file.layers["POSIX"].slowest_rank_s = 40.0
    profile = profile_of(file, ranks=RANKS)
    assert ("straggler" in codes(profile)) == is_found
    if is_found:
        assert only(profile, "straggler").title.startswith("Rank 9 takes 40 s in shared")


def asked(path, rank, *, stats, opens, metadata_s):
    file = local(path, moved=1 << 20, seconds=0.01, rank=rank, opens=opens, metadata_s=metadata_s)
    layer = file.layers["POSIX"]
    layer.stats = stats
    layer.rank_s = [RankSeconds(rank=rank, read_s=0.0, write_s=0.01, metadata_s=metadata_s, opens=opens, stats=stats)]
    return file


def test_rank_that_asks_for_all_is_named():
    files = [asked(f"/s/{rank}", rank, stats=0, opens=1, metadata_s=0.2) for rank in range(RANKS)]
    files += [asked(f"/s/of {rank}", 0, stats=4, opens=0, metadata_s=0.5) for rank in range(RANKS)]
    found = only(profile_of(*files, ranks=RANKS), "stat-storm")
    assert "Rank 0 alone, of 64, asks 256 times" in found.title
    assert found.seconds == pytest.approx(32.0)


def test_questions_of_all_ranks_are_found():
    files = [asked(f"/s/{rank}", rank, stats=1000, opens=2, metadata_s=20.0) for rank in range(RANKS)]
    found = only(profile_of(*files, ranks=RANKS), "stat-storm")
    assert "64,000 times" in found.title and found.seconds == pytest.approx(20.0, rel=0.01)


def test_few_or_fast_questions_are_ignored():
    few = [asked(f"/s/{rank}", rank, stats=2, opens=2, metadata_s=20.0) for rank in range(RANKS)]
    fast = [asked(f"/s/{rank}", rank, stats=1000, opens=2, metadata_s=0.5) for rank in range(RANKS)]
    slow_writes = local("/s/out", moved=1 << 30, seconds=20.0, ranks=RANKS)
    assert "stat-storm" not in codes(profile_of(*few, ranks=RANKS))
    assert "stat-storm" not in codes(profile_of(*fast, slow_writes, ranks=RANKS))


def test_open_that_blocks_for_minutes_is_no_metadata_load():
    blocked = local("/s/pipe", moved=1 << 20, seconds=0.1, opens=1, metadata_s=300.0)
    found = only(profile_of(blocked, ranks=1, wall_s=400.0), "blocked-open")
    assert "Opening pipe took 5 min" in found.title and "pipe" in found.action
    assert codes(profile_of(blocked, ranks=1, wall_s=400.0)) == ["blocked-open"]


def test_many_slow_opens_are_a_metadata_load():
    slow = local("/s/a", moved=1 << 20, seconds=0.1, opens=400, metadata_s=300.0)
    assert codes(profile_of(slow, ranks=1, wall_s=400.0)) == ["metadata-heavy"]


def modules(number, *, opened_s, ranks=RANKS, name="m{}.so"):
    files = []
    for at in range(number):
        file = local(
            f"/sw/lib/{name.format(at)}",
            calls=ranks,
            moved=ranks * 4096,
            read=True,
            seconds=6.4,
            ranks=ranks,
            opens=ranks,
        )
        file.layers["POSIX"].opened_s = opened_s
        file.layers["POSIX"].slowest_rank_s = 0.2
        files.append(file)
    return files


def test_import_storm_is_found():
    found = only(profile_of(*modules(100, opened_s=1.0), ranks=RANKS), "import-storm")
    assert "64 ranks each read 100 small files: 6,400 opens" in found.title
    assert found.seconds == pytest.approx(20.0)
    assert "opened-by-all" not in codes(profile_of(*modules(300, opened_s=1.0), ranks=RANKS))


def test_small_files_read_later_are_no_import_storm():
    assert "import-storm" not in codes(profile_of(*modules(100, opened_s=80.0), ranks=RANKS))


def test_few_inputs_of_all_ranks_are_no_import_storm():
    assert "import-storm" not in codes(profile_of(*modules(5, opened_s=1.0), ranks=RANKS))


def test_many_small_files_of_which_one_takes_the_time_are_not_blamed():
    files = [local(f"/s/f.{at}", moved=1000, seconds=0.001, rank=at % RANKS) for at in range(2000)]
    files.append(local("/s/log", moved=44_000, seconds=50.0))
    assert "many-small-files" not in codes(profile_of(*files, ranks=RANKS))


def test_one_input_opened_by_all_in_no_time_is_not_shown():
    """0.2 s of 780 s."""
    file = local("/s/in", calls=2048, moved=2048 * 800, read=True, seconds=300.0, ranks=2048, opens=2048)
    file.layers["POSIX"].slowest_rank_s = 0.2
    out = local("/s/out", moved=1 << 40, seconds=600.0 * 2048, ranks=2048)
    assert "opened-by-all" not in codes(profile_of(file, out, ranks=2048, wall_s=780.0))


def test_files_of_different_ranks_do_not_add_up():
    """Each of 64 ranks flushes its own file for 10 s."""
    files = striped(rank_s=1.0)
    for file in files:
        file.layers["POSIX"].syncs, file.layers["POSIX"].sync_s = 1000, 10.0
    found = only(profile_of(*files, ranks=RANKS), "many-syncs")
    assert "63 more files" in found.title and found.seconds == pytest.approx(10.0)


def test_much_output_of_one_rank_to_the_terminal_is_not_its_data():
    out = local("<STDOUT>", calls=90_000, moved=1 << 30, seconds=20.0, name="STDIO")
    assert "one-rank" not in codes(profile_of(out, ranks=RANKS))


@pytest.mark.parametrize(("system_s", "is_found"), [(18.0, True), (0.5, False)])
def test_waiting_in_collective_opens_is_no_metadata_load(system_s, is_found):
    """Each rank opens the file 50 times and spends 20 s in that; the system calls of a rank take 18 s or 0.5 s."""
    write = {"calls": 6400, "collective": 6400, "bytes": 100 << 30, "seconds": 64.0, "slowest_rank_s": 1.0}
    file = shared(write=write, system={"calls": 6400, "bytes": 100 << 30}, ranks=RANKS)
    for layer, spent_s in ((file.layers["MPI-IO"], 20.0), (file.layers["POSIX"], system_s)):
        layer.opens, layer.metadata_s, layer.metadata_slowest_rank_s = 50 * RANKS, spent_s * RANKS, spent_s
    assert ("metadata-heavy" in codes(profile_of(file, ranks=RANKS))) == is_found
