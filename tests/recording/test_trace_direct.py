"""Files without MPI-IO in a trace: what forebay-replay issues from it counts like the program, to the digit."""

import json

import pytest

from support.strace import few
from support.mpi import PROGRAMS, files_of, only_file, said
from support.mpi_trace import BY_CHANCE, ORDER_BY_CHANCE, assert_complete, printed, replay_program, replayed

# A replay issues none: what they guarded is other programs' business.
LOCKS = BY_CHANCE | {"locks"}


def direct(mpi):
    return mpi.compiled("direct", "-DWITH_MPI", PROGRAMS / "direct.c")


@pytest.mark.parametrize("case", ["data_calls", "other_calls", "names", "copied", "lent", "few"])
@pytest.mark.parametrize("mpi", few("openmpi", "mpich"), indirect=True)
def test_system_calls_are_replayed(mpi, tmp_path, case):
    before, _ = assert_complete(mpi, tmp_path, 2, direct(mpi), case, tmp_path / "f", by_chance=LOCKS)
    assert len(files_of(before, "posix")) >= 2, "a file of each rank"


@pytest.mark.soak
@pytest.mark.parametrize("case", ["blocks", "appended", "turned"])
def test_streams_are_replayed(mpi, tmp_path, case):
    before, _ = assert_complete(mpi, tmp_path, 2, direct(mpi), case, tmp_path / "f")
    assert len(files_of(before, "stdio")) >= 2 and files_of(before, "posix") == []


def test_failures_that_replay_cannot_repeat_are_reported(mpi, tmp_path):
    """sendfile failed for a pointer to nowhere, which no trace can repeat; the other failures happen again."""
    trace = tmp_path / "trace"
    mpi.run(1, direct(mpi), "failing", tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    run = mpi.run(1, replay_program(mpi), "--directory", tmp_path / "new", trace)
    assert run.returncode == 1
    assert json.loads(run.stdout)["differences"] == 1
    assert "not as in the trace" in run.stderr and "call 8: it succeeded, and failed in the trace" in run.stderr


@pytest.mark.soak
@pytest.mark.parametrize("variant", ["epio", "fortran"])
def test_btio_without_mpiio_is_replayed(openmpi, build, tmp_path, variant):
    """The kernels of `make` are built with Open MPI."""
    deck = tmp_path / "deck"
    deck.write_text(f"w\n0\n3\n12 12 12\n{tmp_path}\n")
    words = [build / "kernels" / "btio", "--sweeps", "0", "--variant", variant, deck]
    before, _ = assert_complete(openmpi, tmp_path, 4, *words)
    files = files_of(before, "posix")
    assert sum(file["ranks"] for file in files) == 4 and files_of(before, "mpiio") == []
    assert sum(file["write"]["system_bytes"] for file in files) >= 3 * 12**3 * 40
    assert only_file(before, "stdio")["path"] == str(deck)


def test_threads_with_their_own_descriptors_are_replayed(mpi, tmp_path):
    before, _ = assert_complete(mpi, tmp_path, 1, direct(mpi), "threads", tmp_path / "f", by_chance=ORDER_BY_CHANCE)
    assert only_file(before, "posix")["write"]["system_calls"] == 8000


@pytest.mark.soak
@pytest.mark.parametrize("case", ["forked", "signals", "full", "many_files"])
def test_traced_program_behaves_as_without_the_library(mpi, tmp_path, case):
    run = mpi.run(1, direct(mpi), case, tmp_path / "f", FOREBAY_MPI_TRACE=tmp_path / "trace")
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert printed(mpi, tmp_path / "trace")[-1].startswith("0 end finalized")


def test_replay_replaces_no_file_the_program_did_not_find(mpi, tmp_path):
    """It looked for a file and did not find it; by now somebody has made one."""
    trace, path = tmp_path / "trace", tmp_path / "f"
    mpi.run(1, direct(mpi), "full", path, FOREBAY_MPI_TRACE=trace)
    looked_for = tmp_path / "f.0"
    looked_for.write_text("precious")
    run = mpi.run(1, replay_program(mpi), "--in-place", trace)
    assert run.returncode == 2 and f"{looked_for}: exists; --overwrite" in run.stderr
    assert looked_for.read_text() == "precious"


def gaps_s(mpi, trace) -> list[float]:
    """Seconds between the end of one call of rank 0 and the begin of the next."""
    calls = [line.split() for line in printed(mpi, trace)[1:-1]]
    times = [(float(words[2]), float(words[3])) for words in calls if words[1].isdigit()]
    return [begin - end for (_, end), (begin, _) in zip(times, times[1:])]


@pytest.mark.soak
def test_replay_waits_the_share_of_the_time_between_calls(mpi, tmp_path):
    """The program sleeps 0.35 s between its two writes."""
    trace = tmp_path / "trace"
    mpi.run(1, direct(mpi), "slow", tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    was = max(gaps_s(mpi, trace))
    assert was >= 0.35

    def longest(share) -> float:
        again = tmp_path / f"trace-{share}"
        _, summary, _ = replayed(
            mpi, 1, trace, "--directory", tmp_path / f"new-{share}", "--think", share, FOREBAY_MPI_TRACE=again
        )
        assert summary["think"] == float(share)
        gaps = gaps_s(mpi, again)
        assert len(gaps) == len(gaps_s(mpi, trace))
        return max(gaps)

    assert longest("2") >= 2 * was - 0.001, "ticks are 100 ns"
    assert longest("0.5") >= was / 2 - 0.001
    assert longest("0") < was / 2


def test_replay_of_a_missing_record_is_an_error(mpi, tmp_path):
    run = mpi.run(2, direct(mpi), "few", tmp_path / "f", FOREBAY_MPI_TRACE="1")
    assert run.returncode == 0
    [line] = said(run)
    assert "no trace is written" in line
    assert "hint: FOREBAY_MPI_TRACE=DIR" in run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.0", "f.1"]
