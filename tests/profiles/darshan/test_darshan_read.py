"""Genuine Darshan logs, whole, and damaged in every way that was thought of."""

import os
import struct
from pathlib import Path

import pytest
from darshan import DarshanReport
from darshan.log_utils import get_log_path

from forebay.advice.advise import findings
from forebay.profiles import darshan_log
from forebay.profiles.darshan_ids import record_id
from forebay.profiles.darshan_messages import Module, Stripes
from forebay.profiles.errors import ProfileError
from support.raw_logs import raw_log

# Places in the header of a log of format 3.41.
NAMES_LENGTH_AT = 40
PARTIAL_AT, MODULE_MAPS_AT, MODULE_VERSIONS_AT = 24, 48, 1072
POSIX, STDIO, DXT_POSIX, DXT_MPIIO, HEATMAP, UNHEARD_OF = 1, 9, 10, 11, 15, 20


def program_of(log: Path):
    (program,) = darshan_log.read(log).programs
    return program


def file_of(log: Path, end: str):
    (file,) = (file for file in program_of(log).files if file.path.endswith(end))
    return file


def give_version(log: Path, module: int, version: int) -> None:
    content = bytearray(log.read_bytes())
    struct.pack_into("<I", content, MODULE_VERSIONS_AT + 4 * module, version)
    log.write_bytes(content)


def refusal(path: Path) -> ProfileError:
    with pytest.raises(ProfileError) as refused:
        darshan_log.read(path)
    assert str(path) in str(refused.value)
    assert refused.value.hint
    return refused.value


# What the logs' makers know: BTIO's pattern, 5 dumps of 4 ranks, 22,118,400 bytes.
@pytest.mark.soak
@pytest.mark.parametrize(
    "name, system_writes, aggregators",
    [("mpiio_shared_default", 5, 1), ("mpiio_shared_tuned", 26, 2), ("mpiio_shared_cbdisable", 23_040, 4)],
)
def test_collective_writes_are_read_with_their_system_calls(logs, name, system_writes, aggregators):
    file = file_of(logs / f"{name}.darshan", "d.dat")
    asked, made = file.layers["MPI-IO"].write, file.layers["POSIX"].write
    assert (asked.calls, asked.collective, asked.independent, asked.bytes) == (20, 20, 0, 22_118_400)
    assert (made.calls, made.bytes, sum(made.sizes)) == (system_writes, 22_118_400, system_writes)
    assert [writer.rank for writer in file.writers] == list(range(aggregators))
    assert all(writer.aggregator for writer in file.writers)
    assert sum(writer.calls for writer in file.writers) == system_writes
    assert (made.ranks, file.collective.aggregators_write, file.ranks) == (aggregators, aggregators, 4)
    assert file.collective.rmw_calls == 0
    assert (file.mount, file.file_system) == ("/", "ext4")
    assert 0 < asked.first_s <= made.first_s < made.last_s <= asked.last_s < file.layers["MPI-IO"].closed_s
    assert file.hints is None


def test_file_per_process_log_is_read(logs):
    program = program_of(logs / "posix_fpp.darshan")
    assert sorted(file.rank for file in program.files) == [0, 1, 2, 3]
    for file in program.files:
        layer = file.layers["POSIX"]
        assert (file.ranks, layer.write.calls, layer.read.calls, layer.syncs) == (1, 32, 33, 1)
        assert layer.write.common_sizes == [] and layer.read.common_sizes == []  # both moved 1 MiB
        assert (layer.write.end_bytes, layer.write.consecutive) == (33_554_432, 31)
        assert file.fastest is None
    assert (program.ranks, program.uses_mpi, program.hosts) == (4, True, 1)


def test_every_counter_of_a_random_log_equals_that_of_darshan(logs):
    path = logs / "small_random.darshan"
    file = file_of(path, "d.dat")
    report = DarshanReport(str(path), read_all=True)
    for module, prefix, layer in (("POSIX", "POSIX", "POSIX"), ("MPI-IO", "MPIIO", "MPI-IO")):
        tables = report.records[module].to_df()
        row = tables["counters"]["id"] == record_id(file.path)
        counter = {**tables["counters"][row].iloc[0], **tables["fcounters"][row].iloc[0]}
        for traffic, verb, past in (
            (file.layers[layer].read, "READ", "READ"),
            (file.layers[layer].write, "WRITE", "WRITTEN"),
        ):
            kinds = [""] if prefix == "POSIX" else ["INDEP_", "COLL_", "NB_", "SPLIT_"]
            assert traffic.calls == sum(counter[f"{prefix}_{kind}{verb}S"] for kind in kinds) > 0
            assert traffic.bytes == counter[f"{prefix}_BYTES_{past}"] > 0
            assert traffic.seconds == counter[f"{prefix}_F_{verb}_TIME"] > 0
        assert file.layers[layer].metadata_s == counter[f"{prefix}_F_META_TIME"]
        assert file.layers[layer].slowest_rank_s == counter[f"{prefix}_F_SLOWEST_RANK_TIME"]
    assert file.slowest.rank == counter["MPIIO_SLOWEST_RANK"]


@pytest.mark.parametrize("name", ["mpiio_shared_default", "mpiio_shared_tuned", "posix_fpp", "small_random"])
def test_heat_map_counts_every_byte_once(logs, name):
    program = program_of(logs / f"{name}.darshan")
    assert program.heat
    for heat in program.heat:
        layers = [file.layers[heat.layer] for file in program.files if heat.layer in file.layers]
        assert sum(map(sum, heat.write)) == sum(layer.write.bytes for layer in layers)
        assert sum(map(sum, heat.read)) == sum(layer.read.bytes for layer in layers)
        assert len(heat.write) == len(heat.read) == 4


def test_heat_map_of_a_log_without_one_comes_from_its_trace(log):
    path = log("mpiio_shared_tuned")
    give_version(path, HEATMAP, 9)
    heats = {heat.layer: heat for heat in program_of(path).heat}
    assert [sum(row) for row in heats["POSIX"].write] == [11_337_728, 10_780_672, 0, 0][: len(heats["POSIX"].write)]
    assert sum(map(sum, heats["MPI-IO"].write)) == 22_118_400
    assert len(heats["POSIX"].write[0]) == 128


def test_writers_of_a_log_without_traces_come_from_its_heat_map(log):
    path = log("mpiio_shared_tuned")
    give_version(path, DXT_POSIX, 2)
    file = file_of(path, "d.dat")
    assert (file.layers["POSIX"].write.ranks, file.collective.aggregators_write) == (2, 2)
    assert file.writers == []  # how many calls each made is not known


@pytest.mark.soak
@pytest.mark.parametrize(
    "module, name, version", [(DXT_POSIX, "DXT_POSIX", 2), (DXT_MPIIO, "DXT_MPIIO", 3), (STDIO, "STDIO", 3)]
)
def test_module_of_a_newer_version_is_named_and_the_others_are_read(log, module, name, version):
    path = log("mpiio_shared_tuned")
    give_version(path, module, version)
    profile = darshan_log.read(path)
    assert any(f"{name} has version {version}" in note for note in profile.notes)
    (file,) = (file for file in profile.programs[0].files if file.path.endswith("d.dat"))
    assert (file.layers["POSIX"].write.calls, file.layers["MPI-IO"].write.calls) == (26, 20)


@pytest.mark.soak
def test_unknown_module_is_named(log):
    path = log("mpiio_shared_tuned")
    content = bytearray(path.read_bytes())
    place = content[MODULE_MAPS_AT + 16 * POSIX : MODULE_MAPS_AT + 16 * (POSIX + 1)]
    content[MODULE_MAPS_AT + 16 * UNHEARD_OF : MODULE_MAPS_AT + 16 * (UNHEARD_OF + 1)] = place
    path.write_bytes(content)
    assert any(f"number {UNHEARD_OF}" in note for note in darshan_log.read(path).notes)
    assert file_of(path, "d.dat").layers["POSIX"].write.calls == 26


def test_incomplete_module_is_named(log):
    path = log("mpiio_shared_default")
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, PARTIAL_AT, 1 << POSIX)
    path.write_bytes(content)
    assert any("POSIX is incomplete" in note for note in darshan_log.read(path).notes)


@pytest.mark.soak
def test_log_truncated_at_any_place_is_refused(log):
    path = log("mpiio_shared_default")
    whole = path.read_bytes()
    for length in [*range(1, len(whole), 500), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refusal(path)


@pytest.mark.soak
def test_log_with_damaged_bytes_is_refused(log):
    path = log("mpiio_shared_default")
    whole = path.read_bytes()
    for at in range(1400, len(whole) - 40, 600):
        path.write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])
        refusal(path)


def test_log_that_crashes_the_library_is_refused(log):
    path = log("mpiio_shared_tuned")
    content = bytearray(path.read_bytes())
    content[NAMES_LENGTH_AT] = 233
    path.write_bytes(content)
    assert "Assertion" in str(refusal(path))


def test_file_that_is_no_log_is_refused(tmp_path):
    empty, text, missing = tmp_path / "empty", tmp_path / "text", tmp_path / "missing"
    empty.touch()
    text.write_text("no log at all\n" * 1000)
    assert "empty" in str(refusal(empty))
    refusal(text)
    assert "No such file" in str(refusal(missing))
    assert "not a regular file" in str(refusal(tmp_path))


def test_unreadable_log_is_refused(log):
    path = log("mpiio_shared_default")
    path.chmod(0)
    if os.geteuid() != 0:
        assert "Permission denied" in str(refusal(path))
        return
    # Root may read everything: another user tries.
    for folder in path.parents[:3]:
        folder.chmod(0o755)
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            darshan_log.read(path)
        except ProfileError as error:
            os._exit(0 if "Permission denied" in str(error) and error.hint else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "name, ranks, files", [("sample-goodost.darshan", 48, 50), ("sample.darshan", 2048, 3), ("noposix.darshan", 512, 2)]
)
def test_logs_of_older_darshan_releases_are_read(name, ranks, files):
    program = program_of(Path(get_log_path(name)))
    assert (program.ranks, len(program.files)) == (ranks, files)


def test_lustre_stripes_are_read():
    files = program_of(Path(get_log_path("sample-goodost.darshan"))).files
    striped = [file for file in files if file.stripe_bytes is not None]
    assert striped
    assert {(file.stripe_bytes, file.file_system) for file in striped} == {(1_048_576, "lustre")}


def test_stripes_and_alignment_of_no_bytes_are_not_known():
    """-1 is Darshan's mark of what it could not observe: no hint to copy has it."""
    made = {"WRITES": 64_000, "BYTES_WRITTEN": 64_000 << 19, "FILE_NOT_ALIGNED": 60_000, "F_SLOWEST_RANK_TIME": 50}
    made |= {"SIZE_WRITE_100K_1M": 64_000, "F_WRITE_TIME": 2900, "FILE_ALIGNMENT": -1}
    asked = {"INDEP_WRITES": 64_000, "BYTES_WRITTEN": 64_000 << 19, "F_WRITE_TIME": 3000, "F_SLOWEST_RANK_TIME": 52}
    raw = raw_log(("MPI-IO", "/lus/out", -1, asked), ("POSIX", "/lus/out", -1, made), ranks=64)
    raw.modules["LUSTRE"] = Module(1, False, stripes=[Stripes(record_id("/lus/out"), [(-1, 0)], [3])])
    profile = darshan_log.profile(Path("/nowhere"), raw)
    (file,) = profile.programs[0].files
    assert (file.layers["POSIX"].alignment_bytes, file.stripe_count, file.stripe_bytes) == (None, None, None)
    found = {one.code: one for one in findings(profile)}
    assert found["not-aligned"].lines == () and "block borders" in found["not-aligned"].action


@pytest.mark.soak
def test_two_thousand_files_of_one_rank_each_are_read():
    files = program_of(Path(get_log_path("sample-badost.darshan"))).files
    assert len(files) == 2051
    assert all(file.ranks == 1 for file in files if "POSIX" in file.layers)


def test_datasets_of_a_genuine_hdf5_log_are_read():
    profile = darshan_log.read(Path(get_log_path("ior_hdf5_example.darshan")))
    assert not any("H5D" in note for note in profile.notes)
    (program,) = profile.programs
    (dataset,) = [one for one in program.objects if one.kind == "dataset" and one.written_bytes]
    assert dataset.path.endswith("Dataset-0000.0000") and dataset.library == "HDF5"
    below = next(file.layers["POSIX"] for file in program.files if file.path == dataset.path.partition(":")[0])
    assert 0 < dataset.written_bytes <= below.write.bytes
