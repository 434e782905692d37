"""What `forebay profile export` writes, as Darshan's own tools and our reader see it."""

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys

import pytest
from darshan import DarshanReport
from darshan.backend import cffi_backend

from forebay.profiles import darshan_hints, darshan_log, darshan_write, metrics, record_reader
from forebay.profiles.darshan_ids import record_id
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import File, Heat, Hints, Job, Layer, Profile, Program, Traffic, WithoutEffect
from support.strace import EVERY_POINT, few
from support.waiting import wait_until

FOREBAY_PY = [sys.executable, "-c", "from forebay.cli import main; main()"]
MOUNTS = [("/", "ext4"), ("/scratch", "lustre")]
DECK = "w\n0\n5\n48 48 48\n{out}\n"
HINTS = {
    "default": "",
    "tuned": "cb_nodes=2:cb_config_list=#*:2#:cb_buffer_size=1048576:striping_unit=1048576",
    "cbdisable": "romio_cb_write=disable:romio_ds_write=disable",
}


def export(*arguments, directory, **options):
    words = [*FOREBAY_PY, "export", *map(str, arguments)]
    return subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=120, **options)


def counters_of(log, module, file_id=None):
    """Darshan's counters of one record, read by Darshan's package."""
    tables = DarshanReport(str(log), read_all=True).records[module].to_df()
    rows = tables["counters"] if file_id is None else tables["counters"][tables["counters"]["id"] == file_id]
    assert len(rows) == 1
    times = tables["fcounters"].loc[rows.index]
    return {**rows.iloc[0], **times.iloc[0]}


def moved(calls, size_class, **more):
    sizes = [0] * 10
    sizes[size_class] = calls
    return Traffic(calls=calls, sizes=sizes, **more)


def a_program(path="/scratch/a.nc", **more):
    """A file with every member that a Darshan log has a place for, each with a value of its own."""
    posix = Layer(
        write=moved(26, 4, bytes=900, common_sizes=[(200_000, 20), (150_000, 6)], seconds=1.5, slowest_rank_s=0.9,
                    first_s=0.25, last_s=3.5, sequential=25, consecutive=16, end_bytes=901),
        read=moved(3, 1, bytes=310, common_sizes=[(103, 3)], seconds=0.5, slowest_rank_s=0.4, first_s=3.6,
                   last_s=4.0, sequential=2, consecutive=1, end_bytes=400),
        opens=4, seeks=7, stats=5, syncs=2, metadata_s=0.125, not_aligned=11, alignment_bytes=4096,
        opened_s=0.125, closed_s=4.5, slowest_rank_s=2.25,
    )  # fmt: skip
    mpiio = Layer(
        write=moved(20, 5, bytes=890, common_sizes=[(1_100_000, 20)], seconds=6.0, first_s=0.2, last_s=3.9,
                    independent=1, collective=16, nonblocking=2, split=1),
        read=moved(4, 2, bytes=300, common_sizes=[(5_000, 4)], seconds=0.75, first_s=3.9, last_s=4.25,
                   independent=4, collective=0, nonblocking=0, split=0),
        opens=4, syncs=1, metadata_s=0.25, opened_s=0.0625, closed_s=4.75, slowest_rank_s=3.0,
    )  # fmt: skip
    file = File(path=path, layers={"POSIX": posix, "MPI-IO": mpiio}, ranks=4)
    return Program(
        files=[file], name="/bin/a.out", arguments=["-x", "two words"], ranks=4, started_unix_s=1_760_000_000.5,
        wall_s=5.25, mpi="Open MPI v4.1.4", **more,
    )  # fmt: skip


def written(program, path, job=None):
    darshan_write.write(program, job or Job(id="1763", scheduler_id="4711.host"), 1000, MOUNTS, path)
    return darshan_log.read(path)


def test_exported_log_is_read_back(tmp_path):
    program = a_program()
    profile = written(program, tmp_path / "a.darshan")
    (back,) = profile.programs
    assert (profile.job.id, profile.job.user, profile.notes) == ("1763", "1000", [])
    assert (back.name, back.ranks, back.mpi) == ("/bin/a.out", 4, program.mpi)
    assert (back.started_unix_s, back.wall_s) == (program.started_unix_s, program.wall_s)
    assert back.log.writer.startswith("Forebay ") and [one.name for one in back.log.modules] == ["POSIX", "MPI-IO"]
    (file,) = back.files
    assert (file.path, file.ranks, file.mount, file.file_system) == ("/scratch/a.nc", 4, "/scratch", "lustre")
    for name, layer in program.files[0].layers.items():
        for way in ("read", "write"):
            sent, got = getattr(layer, way), getattr(file.layers[name], way)
            for member in Traffic.__struct_fields__:
                if member not in ("slowest_rank_s", "ranks"):
                    assert getattr(got, member) == getattr(sent, member), (name, way, member)
        for member in Layer.__struct_fields__:
            if member not in ("read", "write"):
                assert getattr(file.layers[name], member) == getattr(layer, member), (name, member)


def test_exported_log_tells_the_share_of_io_that_the_record_tells(tmp_path):
    """The job ran longer than its program, and counters of files only bound the time of a rank."""
    program = a_program(io_s=9.5, io_slowest_rank_s=2.625)
    job = Job(id="1763", wall_s=8.75)
    recorded = Profile(source="forebay", path="r", job=job, programs=[program], unread=["a % of it; is = missing"])
    darshan_write.write(program, job, 1000, MOUNTS, tmp_path / "a.darshan", recorded.unread)
    profile = darshan_log.read(tmp_path / "a.darshan")
    assert metrics.io_share(profile) == metrics.io_share(recorded)
    assert metrics.io_share(profile).slowest == pytest.approx(0.3)
    assert profile.unread == recorded.unread


def test_pydarshan_reads_the_same_values(tmp_path):
    log = tmp_path / "a.darshan"
    written(a_program(), log)
    report = DarshanReport(str(log), read_all=True)
    job = report.metadata["job"]
    assert (job["uid"], job["jobid"], job["nprocs"], job["run_time"]) == (1000, 4711, 4, 5.25)
    assert report.metadata["exe"] == "/bin/a.out -x two words"
    assert report.mounts == [("/scratch", "lustre"), ("/", "ext4")]
    assert report.name_records == {record_id("/scratch/a.nc"): "/scratch/a.nc"}
    counter = counters_of(log, "POSIX")
    assert (counter["rank"], counter["POSIX_WRITES"], counter["POSIX_SIZE_WRITE_100K_1M"]) == (-1, 26, 26)
    assert (counter["POSIX_ACCESS1_ACCESS"], counter["POSIX_ACCESS1_COUNT"]) == (200_000, 20)
    assert (counter["POSIX_MAX_BYTE_WRITTEN"], counter["POSIX_F_SLOWEST_RANK_TIME"]) == (900, 2.25)
    # not told by the profile
    assert (counter["POSIX_MMAPS"], counter["POSIX_RW_SWITCHES"], counter["POSIX_SLOWEST_RANK"]) == (-1, -1, -1)
    assert counter["POSIX_F_MAX_WRITE_TIME"] == 0.0


def test_modules_have_the_versions_of_the_darshan_release(tmp_path):
    """A new release of the package shows here first: then look at what its counters mean now."""
    program = a_program()
    program.files.append(
        File(path="/scratch/log", layers={"STDIO": Layer(read=moved(0, 0), write=moved(1, 0, bytes=9))})
    )
    program.heat = [Heat(layer="POSIX", bin_s=0.5, ranks_per_row=1, read=[[0, 1]] * 4, write=[[2, 3]] * 4)]
    log = tmp_path / "a.darshan"
    written(program, log)
    modules = DarshanReport(str(log), read_all=False).modules
    assert {name: module["ver"] for name, module in modules.items()} == {
        "POSIX": 4,
        "MPI-IO": 3,
        "STDIO": 2,
        "HEATMAP": 1,
    }
    numbers = {name: (len(cffi_backend.counter_names(name)), len(cffi_backend.fcounter_names(name)))
               for name in ("POSIX", "MPI-IO", "STDIO")}  # fmt: skip
    assert numbers == {"POSIX": (69, 17), "MPI-IO": (51, 17), "STDIO": (14, 15)}
    for name, kind in (("POSIX", "posix_file"), ("MPI-IO", "mpiio_file"), ("STDIO", "stdio_file")):
        bytes_of_record = 8 * (2 + sum(numbers[name]))
        assert cffi_backend.ffi.sizeof(f"struct darshan_{kind}") == bytes_of_record


def test_heat_map_is_read_back(tmp_path):
    heat = Heat(layer="MPI-IO", bin_s=0.5, ranks_per_row=1, read=[[0, 1, 5], [9, 0, 0]], write=[[2, 3, 0], [0, 0, 7]])
    program = a_program(heat=[heat, Heat(layer="POSIX", bin_s=1.0, ranks_per_row=2, read=[[1]], write=[[1]])])
    program.ranks = 2
    (back,) = written(program, tmp_path / "a.darshan").programs
    assert back.heat == [heat]  # Darshan's is of single ranks


def test_time_of_syncing_is_time_of_writing_to_darshan(tmp_path):
    program = a_program()
    program.files[0].layers["POSIX"].sync_s = 2.0
    written(program, tmp_path / "a.darshan")
    assert counters_of(tmp_path / "a.darshan", "POSIX")["POSIX_F_WRITE_TIME"] == 3.5


def test_events_before_the_start_are_moved_to_the_start(tmp_path):
    program = a_program()
    posix = program.files[0].layers["POSIX"]
    posix.opened_s, posix.read.first_s, posix.write.first_s = -2.5, 0.0, None
    (back,) = written(program, tmp_path / "a.darshan").programs
    layer = back.files[0].layers["POSIX"]
    assert (layer.opened_s, layer.read.first_s, layer.write.first_s) == (1e-9, 1e-9, None)


@pytest.mark.soak
@pytest.mark.parametrize("rank, ranks, expected", [(3, 1, 3), (None, 4, -1), (None, 3, -1)])
def test_file_of_one_rank_has_its_rank(tmp_path, rank, ranks, expected):
    program = a_program()
    program.files[0].rank, program.files[0].ranks = rank, ranks
    written(program, tmp_path / "a.darshan")
    assert counters_of(tmp_path / "a.darshan", "MPI-IO")["rank"] == expected


def test_hints_are_read_back(tmp_path):
    program = a_program()
    program.files[0].hints = Hints(
        environment={"cb_nodes": "4", "cb_config_list": "*:4,x:1"},
        program={"odd;key": "a=b>c%@\n\u00e4"},
        in_force={"cb_nodes": "1", "romio_cb_write": "enable"},
        without_effect=[WithoutEffect(key="cb_nodes", asked="4", seen="1 > 0; not told")],
    )
    (back,) = written(program, tmp_path / "a.darshan").programs
    assert back.files[0].hints == program.files[0].hints
    metadata = DarshanReport(str(tmp_path / "a.darshan")).metadata["job"]["metadata"]
    assert metadata[f"hints.{record_id('/scratch/a.nc'):x}"] == "cb_nodes=1;romio_cb_write=enable"


def test_hints_beyond_the_space_are_counted():
    many = {f"hint_{number}": "value" * 4 for number in range(20)}
    hints = {number: Hints(in_force=many | {"file": str(number)}) for number in range(1, 40)}
    text = darshan_hints.metadata({"forebay": "1"}, hints)
    assert len(text.encode()) <= 1023
    kept = sum(len(of_file.in_force) for of_file in darshan_hints.of_files(text).values())
    assert kept + darshan_hints.left_out(text) == 39 * 21
    assert kept >= 21


def test_files_with_the_same_hints_share_them():
    same = {f"hint_{number}": "value" * 4 for number in range(20)}
    text = darshan_hints.metadata({"forebay": "1"}, {number: Hints(in_force=same) for number in range(1, 20)})
    assert darshan_hints.left_out(text) == 0
    assert [hints.in_force for hints in darshan_hints.of_files(text).values()] == [same] * 19


def test_log_of_darshan_has_no_hints():
    assert darshan_hints.of_files("lib_ver=3.5.0\nh=romio_no_indep_rw=true;cb_nodes=4\n") == {}


def test_ids_equal_those_of_darshan(logs):
    report = DarshanReport(str(logs / "small_random.darshan"))
    assert len(report.name_records) == 8
    for file_id, name in report.name_records.items():
        assert record_id(name) == file_id


NAMES = ["/a b/c", "/\u00e4\u00f6/\u65e5\u672c", "/x\ny", "/<b>&amp;", "/" + "n" * 4000, "/a%20;=b", "relative"]


def test_names_of_every_kind_are_exported(tmp_path):
    program = a_program()
    (model,) = program.files
    program.files = [File(path=name, layers=model.layers, ranks=4) for name in NAMES]
    program.arguments = ["line\nbreak", "\u00e4" * 4000]
    (back,) = written(program, tmp_path / "a b \u00e4.darshan").programs
    assert [file.path for file in back.files] == NAMES
    assert back.arguments[:2] == ["line", "break"]


def test_invalid_utf8_bytes_are_shown_escaped(tmp_path):
    program = a_program(path=os.fsdecode(b"/scratch/\xff\xfe"))
    (back,) = written(program, tmp_path / "a.darshan").programs
    assert back.files[0].path == "/scratch/\\xff\\xfe"


@pytest.mark.soak
def test_two_thousand_files_are_exported(tmp_path):
    program = a_program()
    (model,) = program.files
    program.files = [
        File(path=f"/scratch/dir/file {number:05}", layers=model.layers, ranks=4) for number in range(2000)
    ]
    (back,) = written(program, tmp_path / "a.darshan").programs
    assert len({file.path for file in back.files}) == 2000
    assert sum(file.layers["POSIX"].write.calls for file in back.files) == 52_000


def test_run_of_zero_length_or_without_files_is_exported(tmp_path):
    program = a_program()
    program.wall_s, program.files = 0.0, []
    (back,) = written(program, tmp_path / "a.darshan").programs
    assert (back.wall_s, back.files) == (0.0, [])


@pytest.mark.soak
def test_existing_log_is_replaced_and_nothing_else_is_left(tmp_path):
    log = tmp_path / "a.darshan"
    for path in ("/scratch/one", "/scratch/two"):
        (back,) = written(a_program(path), log).programs
        assert back.files[0].path == path
    assert os.listdir(tmp_path) == ["a.darshan"]


def test_unwritable_directory_is_named(tmp_path):
    with pytest.raises(ProfileError) as refused:
        darshan_write.write(a_program(), Job(), 0, MOUNTS, tmp_path / "missing" / "a.darshan")
    assert "missing/a.darshan" in str(refused.value) and refused.value.hint


def record_of(path, files=1):
    """A file as FOREBAY_MPI_STATS makes it, of one program."""
    zero = {"calls": 0.0, "data": 0.0, "other_system": 0.0, "rest": 0.0, "data_outside": 0.0}
    seconds = {"open": 0.1, "close": 0.0, "metadata": 0.0, "sync": 0.0, "write": zero, "read": zero}
    way = {
        "calls": {"independent": 2, "collective": 0, "nonblocking": 0, "nonblocking_collective": 0, "split_collective": 0},
        "independent_ranks": 1, "asked_bytes": 20, "asked_sizes": [2, *[0] * 9], "system_calls": 2, "system_bytes": 20,
        "system_sizes": [2, *[0] * 9], "system_failures": 0, "system_ranks": 1, "aggregators": 0, "stripe_sized": None,
        "gaps": 0, "gap_bytes": 0, "steps_back": 0,
    }  # fmt: skip
    more = {"rmw_calls": 0, "rmw_bytes": 0, "aggregators_active": [0, 0, 0, 0], "writers": []}
    hints = {"environment": {}, "program": {}, "in_force": None, "without_effect": []}
    file = {
        "ranks": 1, "opens": 1, "open_failures": 0, "not_closed": 0, "opened_by": None, "stripe_count": None,
        "stripe_bytes": None, "hints": hints, "write": way | more, "read": way, "locks": 0, "truncations": 0, "syncs": 0,
        "seconds": {"sum": seconds, "slowest": seconds},
    }  # fmt: skip
    step = {"forebay_mpi": 1, "mpi": "an MPI", "ranks": 1, "wall_s": 1.0, "files_dropped": 0}
    path.write_text(json.dumps(step | {"files": [file | {"path": f"/d/{number}"} for number in range(files)]}))
    return path


def test_full_disk_leaves_no_log(tmp_path):
    record = record_of(tmp_path / "step.json", files=500)

    def no_more_than_two_kilobytes():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    run = export(record, "--output", "a.darshan", directory=tmp_path, preexec_fn=no_more_than_two_kilobytes)
    assert run.returncode == 1
    assert "error: a.darshan: " in run.stderr and "hint: " in run.stderr and run.stdout == ""
    assert os.listdir(tmp_path) == ["step.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_export_leaves_no_partial_log(tmp_path, number):
    record = record_of(tmp_path / "step.json", files=1000)
    words = [*FOREBAY_PY, "export", str(record), "--output", "a.darshan"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(name.endswith(".part") for name in os.listdir(tmp_path)), process=process)
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert os.listdir(tmp_path) == ["step.json"]


def test_only_what_forebay_recorded_is_exported(tmp_path, logs):
    run = export(logs / "small_random.darshan", directory=tmp_path)
    assert run.returncode == 1 and "only what Forebay itself recorded" in run.stderr and "hint: " in run.stderr
    run = export("no-such-job", directory=tmp_path, env=os.environ | {"FOREBAY_STATE": str(tmp_path)})
    assert run.returncode == 1 and "no-such-job" in run.stderr and os.listdir(tmp_path) == []


@pytest.mark.soak
def test_steps_are_selected_by_option(tmp_path):
    record = tmp_path / "1763"
    record.mkdir()
    for number in (1, 2):
        record_of(record / f"step-{number}-{number}.json", files=number)
    run = export(record, directory=tmp_path)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.split()) == 2 and all((tmp_path / name).exists() for name in run.stdout.split())
    run = export(record, "--step", "2", "--output", "two.darshan", directory=tmp_path)
    assert run.returncode == 0 and len(darshan_log.read(tmp_path / "two.darshan").programs[0].files) == 2
    run = export(record, "--output", "both.darshan", directory=tmp_path)
    assert run.returncode == 1 and "--step (1, 2)" in run.stderr
    run = export(record, "--step", "3", directory=tmp_path)
    assert run.returncode == 1 and "no step 3" in run.stderr


# Where the pattern is the same, Darshan and we have to count the same.
SAME = {
    "MPI-IO": ["MPIIO_COLL_OPENS", "MPIIO_INDEP_OPENS", "MPIIO_COLL_WRITES", "MPIIO_INDEP_WRITES", "MPIIO_NB_WRITES",
               "MPIIO_SPLIT_WRITES", "MPIIO_COLL_READS", "MPIIO_BYTES_WRITTEN", "MPIIO_BYTES_READ"],
    "POSIX": ["POSIX_WRITES", "POSIX_READS", "POSIX_BYTES_WRITTEN", "POSIX_BYTES_READ", "POSIX_FSYNCS"],
}  # fmt: skip


@pytest.fixture
def run_btio(openmpi, tmp_path):
    """Exports the record of BTIO with the pattern of the genuine logs; the name of the log."""

    def run(hints):
        (tmp_path / "out").mkdir()
        deck, stats, log = (tmp_path / "deck", tmp_path / "step.json", tmp_path / "btio.darshan")
        deck.write_text(DECK.format(out=tmp_path / "out"))
        given = {"MPICH_MPIIO_HINTS": f"*:{hints}"} if hints else {}
        done = openmpi.run(4, openmpi.btio(), deck, FOREBAY_MPI_STATS=stats, OMPI_MCA_io="romio321", **given)
        assert done.returncode == 0, done.stderr
        exported = export(stats, "--output", log, directory=tmp_path)
        assert (exported.returncode, exported.stdout) == (0, f"{log}\n"), exported.stderr
        return stats, log

    return run


def btio_file(profile):
    """The file that BTIO wrote; a record may have others, its deck among them."""
    (file,) = (file for file in profile.programs[0].files if file.path.endswith("btio.full.out"))
    return file


@pytest.mark.parametrize("case", few(*HINTS))
def test_export_of_a_real_run_agrees_with_the_log_of_darshan(run_btio, logs, case):
    stats, log = run_btio(HINTS[case])
    genuine = logs / f"mpiio_shared_{case}.darshan"
    recorded = btio_file(record_reader.read_file(stats))
    (file,) = (file for file in darshan_log.read(genuine).programs[0].files if file.path.endswith("d.dat"))
    for module, names in SAME.items():
        ours = counters_of(log, module, record_id(recorded.path))
        theirs = counters_of(genuine, module, record_id(file.path))
        names = [*names, *(name for name in theirs if "_SIZE_WRITE_" in name or "_SIZE_READ_" in name)]
        if recorded.layers["POSIX"].write.consecutive is not None:  # format 1 does not tell these
            names += [name for name in theirs if "_CONSEC_" in name or "_ACCESS" in name]
        assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
        assert ours["rank"] == theirs["rank"] == -1
    back = btio_file(darshan_log.read(log))
    if HINTS[case]:
        assert back.hints.environment == recorded.hints.environment != {}


@pytest.fixture
def darshan(run_btio, tmp_path):
    """Runs a command of PyDarshan with the log of a real run."""
    _, log = run_btio(HINTS["tuned"])

    def darshan(*arguments):
        words = [sys.executable, "-m", "darshan", *map(str, arguments), log]
        run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0 and "Error" not in run.stderr, run.stderr
        return run.stdout

    return darshan


@pytest.mark.soak
def test_darshan_counts_the_files_of_a_real_run(darshan):
    rows = csv.DictReader(io.StringIO(darshan("file_stats", "--csv")))
    (row,) = (row for row in rows if row["file"].endswith("btio.full.out"))
    assert (row["bytes_written"], row["writes"], row["reads"]) == ("22118400", "26", "0")


if EVERY_POINT:  # each takes some seconds of computing

    def test_darshan_summarizes_a_real_run(darshan, tmp_path):
        darshan("summary", "--output", "page.html")
        page = (tmp_path / "page.html").read_text()
        assert "I/O performance estimate" in page and "MPI-IO" in page
        (row,) = csv.DictReader(io.StringIO(darshan("job_stats", "--csv", "--module", "MPI-IO")))
        assert (row["total_bytes"], row["total_files"], row["nprocs"]) == ("22118400", "1", "4")
        assert float(row["perf_by_slowest"]) > 0
