"""A trace is complete: what forebay-replay issues from it counts like the program, to the digit."""

import os
import pathlib
import re
import subprocess

import pytest

from support.mpi import PROGRAMS, only_file, said
from support.mpi_trace import (
    BY_CHANCE,
    ORDER_BY_CHANCE,
    ROMIO,
    assert_complete,
    counters,
    printed,
    replay_program,
    replayed,
)
from support.strace import few


MPI_IOS = [pytest.param({}, id="ompio"), pytest.param(ROMIO, id="romio")]


def traced(mpi) -> pathlib.Path:
    return mpi.compiled("traced", PROGRAMS / "traced.c")


@pytest.mark.parametrize("case", ["types", "addresses", "communicators", "nonblocking", "split", "two_handles"])
@pytest.mark.parametrize("mpi", few("openmpi", "mpich"), indirect=True)
def test_traced_programs_are_replayed(mpi, tmp_path, case):
    assert_complete(mpi, tmp_path, 4, traced(mpi), case, tmp_path / "f")


@pytest.mark.soak
@pytest.mark.parametrize("case", few("types", "shared_pointers", "communicators", "split", kept=2))
def test_traced_programs_with_romio_of_open_mpi_are_replayed(openmpi, tmp_path, case):
    """Without "nonblocking": MPI_File_iwrite_at_all crashes in the ROMIO of Open MPI 4.1.4, with or without the library."""
    by_chance = ORDER_BY_CHANCE if case == "shared_pointers" else BY_CHANCE
    assert_complete(openmpi, tmp_path, 4, traced(openmpi), case, tmp_path / "f", by_chance=by_chance, **ROMIO)


@pytest.mark.soak
def test_shared_pointers_are_replayed(mpich, tmp_path):
    assert_complete(mpich, tmp_path, 4, traced(mpich), "shared_pointers", tmp_path / "f", by_chance=ORDER_BY_CHANCE)


@pytest.mark.soak
def test_collective_calls_of_several_threads_are_replayed(openmpi, tmp_path):
    """Open MPI only: MPICH 4.0 needs minutes for collective calls of threads, with or without the library."""
    before, _ = assert_complete(openmpi, tmp_path, 2, traced(openmpi), "threads", tmp_path / "f")
    assert [file["write"]["calls"]["collective"] for file in before["files"]] == [40, 40, 40]
    threads = {line.split()[1] for line in printed(openmpi, tmp_path / "trace") if " write_at_all " in line}
    assert len(threads) == 3


@pytest.mark.soak
def test_independent_calls_of_several_threads_are_replayed(mpi, tmp_path):
    assert_complete(mpi, tmp_path, 2, mpi.observed(), "threads", tmp_path / "f", by_chance=ORDER_BY_CHANCE)


@pytest.mark.soak
@pytest.mark.parametrize("binding", ["MPIF", "MPI", "F08"])
def test_fortran_program_is_replayed(mpi, tmp_path, binding):
    program = mpi.compiled(f"fortran-{binding}", f"-DBINDING_{binding}", PROGRAMS / "observed.F90")
    assert_complete(mpi, tmp_path, 2, program, tmp_path / "f")


def test_hints_of_the_program_are_replayed(mpich, tmp_path):
    before, _ = assert_complete(mpich, tmp_path, 2, mpich.observed(), "info", tmp_path / "f")
    assert before["files"][0]["hints"]["program"]["cb_buffer_size"] == "65536"


@pytest.mark.soak
def test_replay_creates_the_input_and_keeps_the_original(mpi, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"o" * 10_000)
    before, _ = assert_complete(mpi, tmp_path, 2, traced(mpi), "existing", path)
    assert {pathlib.Path(file["path"]).name: file["open_failures"] for file in before["files"]} == {"f": 0, "f.gone": 2}
    original = path.read_bytes()
    assert original[3000:] == b"o" * 7000
    copy = tmp_path / "elsewhere" / str(path)[1:]
    assert len(copy.read_bytes()) == 10_000
    assert not copy.with_name("f.gone").exists()


@pytest.mark.soak
def test_output_removed_by_the_program_is_replayed(mpi, tmp_path):
    """It is made for the replay to remove: twice, the second time over what the first has left."""
    trace, path, new = tmp_path / "trace", tmp_path / "f", tmp_path / "new"
    path.write_bytes(b"old")
    mpi.run(4, traced(mpi), "replaced", path, FOREBAY_MPI_TRACE=trace)
    size = path.stat().st_size
    assert any(" delete " in line for line in printed(mpi, trace))
    for options in ([], ["--overwrite"]):
        _, summary, _ = replayed(mpi, 4, trace, "--directory", new, *options)
        assert (summary["skipped"], summary["differences"]) == (0, 0)
        assert (new / str(path)[1:]).stat().st_size == size
    refused = mpi.run(4, replay_program(mpi), "--directory", new, trace)
    assert refused.returncode == 2 and "exists; --overwrite" in refused.stderr


# ---- The kernels ----


def deck(tmp_path) -> pathlib.Path:
    path = tmp_path / "deck"
    path.write_text(f"w\n0\n3\n12 12 12\n{tmp_path}\n")
    return path


SIEVING = "*:romio_cb_write=disable:romio_ds_write=enable"


ALIGNED = "*:cb_nodes=2:cb_config_list=#*:2#:cb_buffer_size=8192"


@pytest.mark.soak
@pytest.mark.parametrize("mpi", few("mpich", "openmpi"), indirect=True)
@pytest.mark.parametrize(
    "variant, hints",
    few(("full", ALIGNED), ("independent", SIEVING), ("full", None), ("full", SIEVING), ("simple", None), kept=2),
)
def test_btio_is_replayed(mpi, tmp_path, variant, hints):
    environment = {"MPICH_MPIIO_HINTS": hints} if hints else {}
    trace, elsewhere = tmp_path / "trace", tmp_path / "elsewhere"
    text = deck(tmp_path)
    btio = [mpi.btio(), "--sweeps", "0", "--variant", variant, text]
    before, _ = mpi.report(4, *btio, FOREBAY_MPI_TRACE=trace, **environment)
    after, summary, _ = replayed(mpi, 4, trace, "--map", f"{tmp_path}={elsewhere}", **environment)
    assert counters(after, elsewhere) == counters(before, tmp_path)
    assert (summary["bytes"], summary["skipped"], summary["differences"]) == (
        3 * 12**3 * 40 + text.stat().st_size,
        0,
        0,
    )


@pytest.fixture
def kernel(build):
    """One of the kernels of `make`, which are built with Open MPI."""
    return lambda name: build / "kernels" / name


@pytest.mark.soak
@pytest.mark.parametrize("romio", MPI_IOS)
@pytest.mark.parametrize("variant", few("pnetcdf", "pnetcdf-nonblocking"))
def test_btio_through_pnetcdf_is_replayed(openmpi, kernel, tmp_path, variant, romio):
    assert_complete(
        openmpi, tmp_path, 4, kernel("btio"), "--sweeps", "0", "--variant", variant, deck(tmp_path), **romio
    )


@pytest.mark.soak
@pytest.mark.parametrize("romio", few(*MPI_IOS))
def test_replib_is_replayed(openmpi, kernel, tmp_path, romio):
    assert_complete(
        openmpi, tmp_path, 4, kernel("replib"), "-c", "20", "-t", "0", "-r", "3", "-o", tmp_path / "r", **romio
    )


@pytest.mark.soak
@pytest.mark.parametrize("romio", few(*MPI_IOS))
@pytest.mark.parametrize("transfer", few("collective", "independent"))
def test_vpic_is_replayed(openmpi, kernel, tmp_path, transfer, romio):
    words = ["--particles", "1000", "--steps", "2", "--transfer", transfer, "-o", tmp_path / "v.h5"]
    assert_complete(openmpi, tmp_path, 4, kernel("vpic"), *words, **romio)


@pytest.mark.parametrize("romio", few(*MPI_IOS))
@pytest.mark.soak
def test_wrf_is_replayed(openmpi, kernel, tmp_path, romio):
    words = [kernel("wrf"), "--nx", "11", "--ny", "9", "--nz", "3", "--variables", "7", "-d", tmp_path]
    assert openmpi.run(4, *words, "--prepare").returncode == 0
    before, _ = assert_complete(openmpi, tmp_path, 4, *words, **romio)
    assert len(before["files"]) > 4


# ---- Limits and losses ----


@pytest.mark.soak
def test_traced_call_takes_a_few_bytes(mpi, tmp_path):
    """BTIO simple: each call has one system call below it."""
    trace = tmp_path / "trace"
    report, _ = mpi.report(
        4, mpi.btio(), "--sweeps", "0", "--variant", "simple", deck(tmp_path), FOREBAY_MPI_TRACE=trace
    )
    file = only_file(report)
    calls = file["write"]["calls"]["independent"] + file["write"]["system_calls"]
    assert calls == 2 * 864
    assert sum(path.stat().st_size for path in trace.iterdir()) < 10 * calls


@pytest.mark.soak
def test_trace_limit_is_kept_and_reported(mpi, tmp_path):
    trace = tmp_path / "trace"
    run = mpi.run(1, traced(mpi), "many", tmp_path / "f", FOREBAY_MPI_TRACE=trace, FOREBAY_MPI_TRACE_BYTES_MAX=50_000)
    assert run.returncode == 0
    [line] = said(run)
    lost, lost_system = map(int, re.search(r"lacks (\d+) call\(s\).* and (\d+) system call", line).groups())
    assert "the limit of FOREBAY_MPI_TRACE_BYTES_MAX" in line
    [file] = trace.iterdir()
    assert 40_000 < file.stat().st_size <= 50_000
    lines = printed(mpi, trace)
    assert sum(" write_at " in line for line in lines) + lost == 20_001, "the close is lost as well"
    assert lines[-1] == f"0 end finalized calls=20002 lost={lost} lost_system={lost_system}"

    refused = mpi.run(1, replay_program(mpi), "--directory", tmp_path / "new", trace)
    assert refused.returncode == 2
    assert f"the trace lacks {lost} call(s): its limit was reached\nhint: --partial" in refused.stderr
    _, summary, _ = replayed(mpi, 1, trace, "--directory", tmp_path / "new", "--partial")
    assert summary["calls"] == 20_002 - lost


@pytest.fixture
def small_disk(tmp_path):
    """64 KiB of which nothing else takes a part."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True)
    if made.returncode != 0:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_does_not_affect_the_program(mpi, tmp_path, small_disk):
    run = mpi.run(1, traced(mpi), "many", tmp_path / "f", FOREBAY_MPI_TRACE=small_disk / "trace")
    assert run.returncode == 0
    assert (tmp_path / "f").stat().st_size == 160_000
    [line] = said(run)
    assert line.endswith("No space left on device")
    lines = printed(mpi, small_disk / "trace")
    assert " lost=" in lines[-1] and " lost=0 " not in lines[-1]


def test_trace_directory_that_cannot_be_created_is_reported(mpi, tmp_path):
    run = mpi.run(1, mpi.observed(), "own", tmp_path / "f", FOREBAY_MPI_TRACE="/proc/nowhere")
    assert run.returncode == 0 and " ok" in run.stdout
    assert any("rank 0's trace cannot be made" in line for line in said(run))


def test_trace_flushed_before_a_kill_is_readable(mpi, tmp_path):
    trace = tmp_path / "trace"
    run = mpi.run(2, traced(mpi), "killed", tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    assert run.returncode != 0
    done = subprocess.run([replay_program(mpi), "--print", trace], capture_output=True, text=True)
    assert done.returncode == 1
    assert "the trace has no end: its program was killed" in done.stderr
    writes = [line for line in done.stdout.splitlines() if line.startswith("0 ") and " write_at " in line]
    assert len(writes) == 20_000, "all calls up to the last close"
    refused = mpi.run(2, replay_program(mpi), "--directory", tmp_path / "new", trace)
    assert refused.returncode == 2 and "hint: --partial" in refused.stderr
    _, summary, _ = replayed(mpi, 2, trace, "--directory", tmp_path / "new", "--partial")
    assert summary["calls"] >= 2 * 20_002


def cut(trace, rank, length) -> None:
    path = trace / f"rank-{rank:06}.trace"
    path.write_bytes(path.read_bytes()[:length])


def test_damage_is_named(mpi, tmp_path):
    trace = tmp_path / "trace"
    mpi.run(2, traced(mpi), "split", tmp_path / "f", FOREBAY_MPI_TRACE=trace)

    def refusal(ranks=2):
        run = mpi.run(ranks, replay_program(mpi), "--directory", tmp_path / "new", trace)
        assert run.returncode == 2 and not (tmp_path / "new").exists()
        return run.stderr

    assert "the trace was made by 2 ranks, these are 1\nhint: mpiexec -n" in refusal(ranks=1)
    path = trace / "rank-000001.trace"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert f"{path}: the trace is cut off" in refusal()
    path.write_bytes(whole[:-5] + b"?????")
    assert f"{path}: the trace is damaged" in refusal()
    path.write_bytes(b"")
    assert f"{path}: this is no trace" in refusal()
    path.unlink()
    assert f"{path}: No such file or directory" in refusal()


def test_partial_trace_ends_at_the_last_common_call(mpi, tmp_path):
    """Rank 1's trace lacks its last block; collective calls that it lacks are not waited for."""
    trace = tmp_path / "trace"
    mpi.run(2, traced(mpi), "types", tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    cut(trace, 1, 200)
    _, summary, _ = replayed(mpi, 2, trace, "--directory", tmp_path / "new", "--partial")
    assert summary["partial"] and summary["skipped"] > 0 and summary["differences"] == 0


def test_replay_does_not_overwrite_files_without_the_option(mpi, tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "f"
    mpi.run(2, traced(mpi), "split", path, FOREBAY_MPI_TRACE=trace)
    path.write_bytes(b"precious")

    def refused(*options):
        run = mpi.run(2, replay_program(mpi), *options, trace)
        assert run.returncode == 2 and path.read_bytes() == b"precious"
        return run.stderr

    assert "where shall the files be?" in refused()
    assert "this is the file of the trace itself" in refused("--map", f"{tmp_path}={tmp_path}")
    assert "no --map or --directory says" in refused("--map", "/nowhere=/elsewhere")
    assert f"{path}: exists; --overwrite" in refused("--in-place")
    _, summary, _ = replayed(mpi, 2, trace, "--in-place", "--overwrite")
    assert summary["differences"] == 0 and path.stat().st_size == 4000


def test_descriptors_of_the_program_are_unchanged(mpi, tmp_path):
    trace = tmp_path / "trace"
    run = mpi.run(1, traced(mpi), "descriptors", tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "f.plain").read_text() == "mine\n"
    assert sum(" write_at " in line for line in printed(mpi, trace)) == 20_000


@pytest.mark.soak
@pytest.mark.parametrize("case", ["forked", "forked_threads", "signals", "unclosed", "jumping"])
def test_traced_program_behaves_as_without_the_library(openmpi, tmp_path, case):
    run = openmpi.run(1, openmpi.observed(), case, tmp_path / "f", FOREBAY_MPI_TRACE=tmp_path / "trace")
    assert (run.returncode, run.stdout) == (0, "rank 0 ok\n"), run.stderr
    assert printed(openmpi, tmp_path / "trace")[-1].startswith("0 end finalized")


def test_abort_is_reported(openmpi, tmp_path):
    trace = tmp_path / "trace"
    run = openmpi.run(1, openmpi.observed(), "aborting", tmp_path / "f", FOREBAY_MPI_TRACE=trace)
    assert run.returncode == 7
    assert " end aborted " in printed(openmpi, trace)[-1]
    refused = openmpi.run(1, replay_program(openmpi), "--directory", tmp_path / "new", trace)
    assert "the program ended by MPI_Abort\nhint: --partial" in refused.stderr


def test_trace_is_off_by_default(mpi, tmp_path):
    run = mpi.run(1, mpi.observed(), "own", tmp_path / "f", FOREBAY_MPI_TRACE="0", MPICH_MPIIO_STATS="1")
    assert run.returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["f.0"]
