"""Our own records: what the library and the command write, and what is left of it when things go wrong."""

import json
import subprocess
import sys

import pytest

from support.mpi import Mpi
from support import record_data
from support.report_data import advised
from forebay.advice.advise import findings, paragraph
from forebay.profiles import metrics, record_reader, sources, time_parts
from forebay.profiles.errors import ProfileError
from forebay.report.objects import as_json
from forebay.report.verdict import verdict


@pytest.fixture(scope="module")
def statistics(build, tmp_path_factory):
    """What the library says of BTIO's pattern on 4 ranks: JSON, and what it printed."""
    scratch = tmp_path_factory.mktemp("statistics")
    mpi = Mpi("openmpi", build)
    (scratch / "out").mkdir()
    (scratch / "deck").write_text(f"w\n0\n5\n48 48 48\n{scratch}/out\n")
    path = scratch / "stats.json"
    run = mpi.run(4, build / "kernels" / "btio", scratch / "deck", FOREBAY_MPI_STATS=path, MPICH_MPIIO_STATS=1)
    assert run.returncode == 0, run.stderr
    (scratch / "output.txt").write_text(run.stderr)
    return path


@pytest.mark.soak
def test_statistics_of_the_mpi_library_are_read(statistics):
    profile = sources.open_path(statistics)
    (program,) = profile.programs
    (file,) = [file for file in program.files if file.path.endswith("btio.full.out")]
    called, system = file.layers["MPI-IO"].write, file.layers["POSIX"].write
    assert (program.ranks, program.uses_mpi, file.ranks) == (4, True, 4)
    assert (called.collective, called.independent, called.bytes) == (20, 0, 22118400)
    assert system.bytes == 22118400
    assert sum(called.sizes) == 20 and sum(system.sizes) == system.calls
    assert called.seconds == pytest.approx(called.data_s + called.other_system_s + called.rest_s, abs=1e-4)
    assert sum(writer.bytes for writer in file.writers) == 22118400
    assert file.not_closed == 0


@pytest.mark.soak
def test_sequential_calls_syncs_and_single_ranks_are_read(build, tmp_path, statistics):
    mpi = Mpi("openmpi", build)
    told, _ = mpi.report(2, mpi.observed(), "independent", tmp_path / "f")
    path = tmp_path / "report.json"
    path.write_text(json.dumps(told))
    (file,) = sources.open_path(path).programs[0].files
    system = file.layers["POSIX"].write
    assert (system.gaps, system.consecutive, system.sequential) == (6, 0, 6), "the first call of a rank is neither"
    assert (file.layers["MPI-IO"].syncs, file.rank) == (2, None)
    files = sources.open_path(statistics).programs[0].files
    assert [file.rank for file in files if file.path.endswith("deck")] == [0]


def test_json_and_box_of_one_run_agree(statistics):
    told = sources.open_path(statistics.parent / "output.txt").programs[0].files[0]
    known = next(file for file in sources.open_path(statistics).programs[0].files if file.path == told.path)
    for layer, names in {"MPI-IO": ("collective", "independent"), "POSIX": ("calls", "bytes", "gaps")}.items():
        for name in names:
            assert getattr(told.layers[layer].write, name) == getattr(known.layers[layer].write, name)
    assert told.collective.aggregators_write == known.collective.aggregators_write
    assert told.collective.active == known.collective.active


def test_record_with_several_programs_is_read(tmp_path):
    files = [record_data.posix_file(f"/data/in {n}", read_bytes=100 * n, read_s=0.5) for n in (1, 2)]
    late = record_data.step(*files, started_unix_s=1700000050.0, program="/opt/wrf/real.exe")
    directory = record_data.record(tmp_path, record_data.job_json(), late, record_data.step())
    (directory / "process-1700000000003-7.json").write_text(
        json.dumps({"forebay_mpi": 2, "mpi": None, "program": "/bin/tar", "files": [files[0]], "wall_s": 1.0})
    )
    profile = record_reader.read_record(directory)
    assert [program.name for program in profile.programs] == ["/bin/tar", "/opt/wrf/wrf.exe", "/opt/wrf/real.exe"]
    assert [program.uses_mpi for program in profile.programs] == [False, True, True]
    assert profile.programs[0].ranks == 1
    assert metrics.totals(profile, "POSIX").read.bytes == 400
    assert metrics.totals(profile, "POSIX").files == 2
    assert profile.notes == []


def test_layers_of_one_path_are_one_file(tmp_path):
    mpiio = {
        "path": "/data/a",
        "layer": "mpiio",
        "ranks": 4,
        "opens": 4,
        "write": {"system_calls": 2, "system_bytes": 20},
    }
    posix = record_data.posix_file("/data/a", written_bytes=5, calls=1)
    profile = record_reader.read_record(
        record_data.record(tmp_path, record_data.job_json(), record_data.step(mpiio, posix))
    )
    (file,) = profile.programs[0].files
    assert (file.layers["POSIX"].write.calls, file.layers["POSIX"].write.bytes) == (3, 25)
    assert (file.ranks, file.layers["MPI-IO"].opens, file.layers["POSIX"].opens) == (4, 4, 1)


def test_heat_map_is_decoded(tmp_path):
    heat = {"layer": "posix", "bins": 3, "bin_s": 0.1, "ranks_per_row": 2, "rows": 2}
    good = heat | {"write": [[0, 1, 7], [1, 2, 9]], "read": []}
    bad = heat | {"layer": "mpiio", "write": [[2, 0, 1]]}
    vast = heat | {"layer": "stdio", "rows": 10**12}
    profile = record_reader.read_record(
        record_data.record(tmp_path, record_data.job_json(), record_data.step(heat=[good, bad, vast]))
    )
    (found,) = profile.programs[0].heat
    assert found.write == [[0, 7, 0], [0, 0, 9]] and found.read == [[0, 0, 0], [0, 0, 0]]
    assert sum("heat map" in note for note in profile.notes) == 2


@pytest.mark.parametrize("cut", [0, 1, 17, 200])
def test_damaged_files_are_named_and_the_rest_is_read(tmp_path, cut):
    good = record_data.step(record_data.posix_file("/data/a", written_bytes=5))
    directory = record_data.record(tmp_path, record_data.job_json(), good, good)
    path = directory / "step-1700000000001-101.json"
    path.write_text(path.read_text()[:cut])
    (directory / "step-1700000000005-3.json.new").write_text("{")
    profile = record_reader.read_record(directory)
    assert len(profile.programs) == 1
    (note,) = profile.notes
    assert path.name in note


@pytest.mark.parametrize(
    "members",
    [
        {"wall_s": 1e308},
        {"wall_s": -1.0},
        {"started_unix_s": 1e300},
        {"io_s": {"sum": 1.0, "slowest": 1e308}},
        {"files": [{"path": "/s/a", "layer": "posix", "seconds": {"sum": {"write": {"data": -5.0}}}}]},
        {"files": [{"path": "/s/a", "layer": "posix", "write": {"system_sizes": [1, 2]}}]},
        {"files": [{"path": "/s/a", "write": {"asked_sizes": [1] * 12}}]},
        {"files": [{"path": "/s/a", "write": {"aggregators_active": [1]}}]},
    ],
)
def test_values_that_no_run_has_are_damage(tmp_path, members):
    path = tmp_path / "step.json"
    path.write_text(json.dumps(record_data.step() | members))
    with pytest.raises(ProfileError, match="not as documented") as refused:
        record_reader.read_file(path)
    assert refused.value.hint


@pytest.mark.parametrize("members", [{"wall_s": 1e-320}, {"io_s": {"sum": 1e-320, "slowest": 1e-320}}])
def test_times_below_the_tick_of_a_clock_have_a_report(tmp_path, members):
    path = tmp_path / "step.json"
    path.write_text(json.dumps(record_data.step(record_data.posix_file("/s/a", written_bytes=1 << 20)) | members))
    one = advised(record_reader.read_file(path))
    assert "Infinity" not in as_json([one], None, None, True)


@pytest.mark.parametrize("changed", [{"bin_s": 0.0}, {"ranks_per_row": 0}])
def test_heat_map_without_time_or_ranks_is_left_out(tmp_path, changed):
    heat = {"layer": "posix", "bins": 2, "bin_s": 1.0, "ranks_per_row": 1, "rows": 1, "write": [[0, 1, 5]]} | changed
    path = tmp_path / "step.json"
    path.write_text(json.dumps(record_data.step(heat=[heat])))
    profile = record_reader.read_file(path)
    assert profile.programs[0].heat == [] and any("heat map" in note for note in profile.notes)


def test_wrong_types_are_damage(tmp_path):
    directory = record_data.record(tmp_path, record_data.job_json(), record_data.step(ranks="many"), record_data.step())
    profile = record_reader.read_record(directory)
    assert len(profile.programs) == 1 and "not as documented" in profile.notes[0]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"id": 3}', b'{"id": "\xd7da"}'])
def test_damaged_job_file_is_named(tmp_path, content):
    directory = record_data.record(tmp_path, record_data.job_json(), record_data.step())
    (directory / "job.json").write_bytes(content)
    profile = record_reader.read_record(directory)
    assert profile.job.id == directory.name and len(profile.programs) == 1
    assert any("nothing is known of the job" in note for note in profile.notes)


def test_newer_formats_are_read_as_far_as_they_are_known(tmp_path):
    file = record_data.posix_file("/data/a", written_bytes=5, colour="blue")
    future = record_data.posix_file("/data/b", written_bytes=5, layer="object-store")
    step = record_data.step(file, future, forebay_mpi=3, weather={"sun": True})
    job = record_data.job_json(forebay_job=2, planet="Mars")
    profile = record_reader.read_record(record_data.record(tmp_path, job, step))
    assert [file.path for file in profile.programs[0].files] == ["/data/a"]
    assert any("format 3" in note for note in profile.notes)
    assert any("job.json has format 2" in note for note in profile.notes)
    assert any("object-store" in note for note in profile.notes)


def test_running_and_killed_jobs_are_distinguished(tmp_path):
    running = record_data.job_json(
        "1", state="running", ended_unix_s=None, outcome=None, process=record_data.own_process()
    )
    job = record_reader.read_record(record_data.record(tmp_path, running)).job
    assert job.running and not job.killed
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for number, change in enumerate(({"pid": gone.pid}, {"start_ticks": 1}, {"boot_id": "another"})):
        dead = running | {"id": f"2{number}", "process": running["process"] | change}
        job = record_reader.read_record(record_data.record(tmp_path, dead)).job
        assert job.killed and not job.running, change
    far = running | {"id": "3", "process": running["process"] | {"host": "nid00001", "pid": gone.pid}}
    assert record_reader.read_record(record_data.record(tmp_path, far)).job.running


def test_program_without_finalize_and_job_without_programs_are_read(tmp_path):
    unfinished = record_data.step(finished=False, wall_s=None)
    aborted = record_data.step(finished=False, wall_s=None, aborted={"rank": 3, "code": 17})
    profile = record_reader.read_record(record_data.record(tmp_path, record_data.job_json("1"), unfinished, aborted))
    assert [program.finished for program in profile.programs] == [False, False]
    assert profile.programs[1].aborted_rank == 3
    assert any("MPI_Abort with code 17" in note for note in profile.notes)
    empty = record_reader.read_record(record_data.record(tmp_path, record_data.job_json("2")))
    assert empty.programs == [] and "No program" in empty.notes[0]
    assert metrics.io_share(empty).average is None and metrics.layers_present(empty) == []


@pytest.mark.soak
def test_ten_thousand_files_and_odd_names_are_read(tmp_path):
    names = ["/data/with space", "/data/größe", "/data/new\nline", "/data/<b>", *(f"/data/{n}" for n in range(10_000))]
    directory = record_data.record(
        tmp_path,
        record_data.job_json(),
        record_data.step(*(record_data.posix_file(name, written_bytes=1) for name in names)),
    )
    profile = record_reader.read_record(directory)
    assert [file.path for file in profile.programs[0].files] == names
    assert metrics.file_counts(profile, "POSIX")[0].number == len(names)


def test_zero_length_run_is_read(tmp_path):
    job = record_data.job_json(outcome={"job_status": 0, "job_s": 0.0, "exit_code": 0})
    profile = record_reader.read_record(record_data.record(tmp_path, job, record_data.step(wall_s=0.0)))
    assert metrics.io_share(profile) is None
    assert time_parts.time_split(profile.programs[0]) == []
    assert metrics.performance(profile.programs[0], "POSIX") is None


def test_json_of_others_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    with pytest.raises(ProfileError, match="not of libforebay_mpi"):
        sources.open_path(path)


def test_processes_beyond_the_first_are_counted(tmp_path):
    directory = record_data.record(tmp_path, record_data.job_json())
    process = {"forebay_mpi": 2, "mpi": None, "program": "/bin/tar", "files": [], "wall_s": 1.0}
    (directory / "process-1700000000003-7.json").write_text(json.dumps(process))
    (directory / "processes").write_bytes(b"." * 90)
    profile = record_reader.read_record(directory)
    sentence = "90 processes without MPI did enough I/O for a record; 1 of them are in the record"
    assert (profile.notes, profile.unread) == ([f"{sentence}."], [sentence])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"files_dropped": 76}, "76 opens of wrf.exe found no room in the record"),
        ({"finished": False, "wall_s": None}, "wrf.exe ended without MPI_Finalize"),
        ({}, None),
    ],
)
def test_little_io_is_nothing_to_gain_only_where_all_of_it_is_in_the_record(tmp_path, values, reason):
    little = record_data.posix_file("/data/a", written_bytes=5, calls=1)
    steps = [record_data.step(little), record_data.step(little, **values)]
    profile = record_reader.read_record(record_data.record(tmp_path, record_data.job_json(), *steps))
    assert profile.unread == ([reason] if reason else [])
    words = f"{verdict(profile)} {paragraph(profile, findings(profile, None))}"
    assert ("nothing to gain" in words) == (reason is None)
    assert (f"How much more is not known: {reason}." in words) == (reason is not None)
