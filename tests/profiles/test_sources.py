"""What a user may name, and what is said when it cannot be read."""

import json
import os
import pathlib
import shutil

import pytest

from support import record_data
from forebay.profiles import darshan_write, records, sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import File, Job, Layer, Program, Traffic
from forebay.report.verdict import verdict


def opened(state, *arguments):
    return sources.open_profiles([str(argument) for argument in arguments], state)


def refused(state, *arguments):
    with pytest.raises(ProfileError) as raised:
        opened(state, *arguments)
    assert raised.value.hint
    return str(raised.value)


def test_last_record_is_the_default(tmp_path):
    record_data.record(tmp_path, record_data.job_json("11", started_unix_s=20.0, ended_unix_s=None))
    record_data.record(tmp_path, record_data.job_json("12", started_unix_s=10.0, ended_unix_s=15.0))
    assert opened(tmp_path)[0].job.id == "11"


def test_record_is_found_by_id_scheduler_id_and_prefix(tmp_path):
    record_data.record(tmp_path, record_data.job_json("1795311", scheduler_job="4711"))
    record_data.record(tmp_path, record_data.job_json("1795999", scheduler_job="4712"))
    assert [profile.job.id for profile in opened(tmp_path, "1795999", "4711", "17953")] == [
        "1795999",
        "1795311",
        "1795311",
    ]
    assert "1795 is a part of 2 ids" in refused(tmp_path, "1795")
    assert "no recorded job of that id" in refused(tmp_path, "99")


REPOSITORY = pathlib.Path(__file__).parents[2]
SHORT_IDS = json.loads((REPOSITORY / "crates/forebay-cli/src/short_ids.json").read_text())


@pytest.mark.parametrize("case", SHORT_IDS, ids=lambda case: f"{case['wanted']!r} of {len(case['ids'])}")
def test_short_id_selects_the_same_job_as_in_the_rust_commands(tmp_path, case):
    for number, job in enumerate(case["ids"]):
        record_data.record(tmp_path, record_data.job_json(job, scheduler_job=None, started_unix_s=float(number)))
    if isinstance(case["is"], str):
        assert records.find_record(tmp_path, case["wanted"]).name == case["is"]
        return
    with pytest.raises(ProfileError) as raised:
        records.find_record(tmp_path, case["wanted"])
    is_ambiguous = "is a part of" in str(raised.value)
    assert is_ambiguous == (case["is"] is False and bool(case["ids"]))


def test_repeated_scheduler_id_selects_the_newest_run(tmp_path):
    for number in (1, 2):
        record_data.record(
            tmp_path, record_data.job_json(str(number), scheduler_job="4711", started_unix_s=float(number))
        )
    assert opened(tmp_path, "4711")[0].job.id == "2"


def test_file_kind_is_detected_by_content(tmp_path):
    path = tmp_path / "core.txt"
    shutil.copy(record_data.LOGS / "posix_fpp.darshan", path)
    assert opened(tmp_path, path)[0].source == "darshan"


@pytest.mark.soak
def test_newest_log_of_a_directory_is_opened_with_all_of_its_job(tmp_path):
    days = tmp_path / "2026"
    days.mkdir()
    for age, (name, source) in enumerate(
        [
            ("a_x_id7192_1.darshan", "mpiio_shared_default"),
            ("b_x_id7192_2.darshan", "mpiio_shared_default"),
            ("c_x_id7171_3.darshan", "posix_fpp"),
        ]
    ):
        shutil.copy(record_data.LOGS / f"{source}.darshan", days / name)
        os.utime(days / name, (1000 - age, 1000 - age))
    (profile,) = opened(tmp_path, days)
    assert profile.job.id == "7192" and len(profile.programs) == 2
    assert profile.path == str(days)


def write_log(directory, name, *, job=42, uid=1000, started_unix_s=1.7e9, unread=()):
    directory.mkdir(exist_ok=True)
    layer = Layer(read=Traffic(calls=0, bytes=0), write=Traffic(calls=8, bytes=1 << 20, seconds=0.5))
    file = File(path="/lus/a", layers={"POSIX": layer}, ranks=1, rank=0)
    program = Program(files=[file], name="/bin/app", ranks=4, started_unix_s=started_unix_s, wall_s=100.0)
    path = directory / name
    darshan_write.write(program, Job(scheduler_id=str(job)), uid, [("/", "ext4")], path, unread)
    return path


def opened_directory(state, newest):
    os.utime(newest, (2e9, 2e9))
    (profile,) = opened(state, newest.parent)
    return profile


def test_log_of_the_job_that_is_incomplete_or_damaged_makes_its_share_unknown(tmp_path):
    directory = tmp_path / "logs"
    newest = write_log(directory, "u_a_id42_1.darshan", started_unix_s=1.7e9 + 200)
    write_log(directory, "u_b_id42_2.darshan", unread=["a part of b is damaged"])
    damaged = write_log(directory, "u_c_id42_3.darshan")
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:1000])
    write_log(directory, "u_d_id421_4.darshan", job=421).chmod(0)
    profile = opened_directory(tmp_path, newest)
    assert len(profile.programs) == 2
    assert profile.unread == ["a part of b is damaged", f"{damaged.name}, a log of the same job, cannot be read"]
    assert "did not hold this job back" not in verdict(profile)


@pytest.mark.parametrize(
    ("other", "programs", "is_named"),
    [
        ({"started_unix_s": 1.7e9 + 3600}, 2, False),
        ({"started_unix_s": 1.7e9 + 50}, 2, False),
        ({"started_unix_s": 1.7e9 - 31 * 86_400}, 1, True),
        ({"uid": 2000}, 1, False),
        ({"job": 43}, 1, False),
    ],
)
def test_logs_of_one_id_are_one_job_if_user_and_time_agree(tmp_path, other, programs, is_named):
    newest = write_log(tmp_path / "logs", "u_a_id42_1.darshan")
    write_log(tmp_path / "logs", "u_b_id42_2.darshan", **other)
    profile = opened_directory(tmp_path, newest)
    assert len(profile.programs) == programs
    assert any("of the same job id and another day" in note for note in profile.notes) == is_named


def test_damaged_file_of_a_record_makes_the_share_of_io_unknown(tmp_path):
    directory = record_data.record(tmp_path, record_data.job_json("11"), record_data.step())
    (directory / "step-9.json").write_text('{"forebay_mpi": 2, "fil')
    (profile,) = opened(tmp_path, directory)
    assert "step-9.json of the record cannot be read" in profile.unread


def test_record_is_opened_by_its_directory_or_job_file(tmp_path):
    directory = record_data.record(tmp_path, record_data.job_json("11"), record_data.step())
    for path in (directory, directory / "job.json"):
        (profile,) = opened(tmp_path, path)
        assert profile.job.id == "11" and len(profile.programs) == 1


@pytest.mark.parametrize("name", ["mpiio_shared_default", "small_random"])
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_truncated_logs_are_refused(tmp_path, name, share):
    content = (record_data.LOGS / f"{name}.darshan").read_bytes()
    path = tmp_path / "cut.darshan"
    path.write_bytes(content[: max(1, int(share * len(content)))])
    assert str(path) in refused(tmp_path, path)


def test_unreadable_source_is_reported(tmp_path):
    empty = tmp_path / "empty.darshan"
    empty.touch()
    assert "empty file" in refused(tmp_path, empty)
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(256)) * 100)
    assert "no log that is known" in refused(tmp_path, noise)
    half = tmp_path / "half.json"
    half.write_text('{"forebay_mpi": 2, "files": [')
    assert "damaged or half-written" in refused(tmp_path, half)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "neither a file nor a directory" in refused(tmp_path, fifo)
    (tmp_path / "nothing").mkdir()
    assert "neither a record nor a Darshan log" in refused(tmp_path, tmp_path / "nothing")
    assert "no such file" in refused(tmp_path, tmp_path / "missing" / "x")
    assert "no job has been recorded" in refused(tmp_path)
    assert "empty name" in refused(tmp_path, "")
    assert refused(tmp_path, "nul\0byte")
    assert refused(tmp_path, "x" * 5000)
