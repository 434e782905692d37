"""What a user may name, and what is said when it cannot be read."""

import json
import os
import pathlib
import shutil

import pytest

from support import record_data
from forebay.profiles import records, sources
from forebay.profiles.errors import ProfileError


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
