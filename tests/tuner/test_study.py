"""The study file: what is appended is there, what a killed tuner was writing is not."""

import json

import msgspec
import pytest

from forebay.tune.errors import TuneError
from forebay.tune.model import Guess, Machine, Pairing, Parameter, Plan, Refusal, Run, Verdict
from forebay.tune.study import FILE_NAME, Head, Study

PLAN = Plan(
    parameters=(
        Parameter(
            name="out*:cb_nodes",
            setting="cb_nodes",
            pattern="out*",
            values=("2", "4"),
            ordered=True,
            default="1",
            reason="one aggregator",
            source="test",
        ),
    ),
    refusals=(Refusal(setting="striping_unit", pattern=None, reason="no Lustre"),),
    guesses=(Guess(configuration={"out*:cb_nodes": "4"}, reason="all ranks"),),
    machine=Machine(ranks=4, nodes=1),
    strategy="tpe",
    seed=1,
    runs_max=12,
)


def head(**members) -> Head:
    known = {"script": "/jobs/a.sh", "script_digest": "0" * 64, "started_unix_s": 1.0, "host": "n1", "seed": 1}
    return Head(**(known | members))


def run(number: int, **members) -> Run:
    known = {"place": "file-system", "phase": "search", "configuration": {}, "status": "ok", "seconds": 1.5}
    return Run(number=number, **(known | members))


@pytest.fixture
def study(tmp_path):
    with Study.create(tmp_path / "a.tune", head()) as made:
        yield made


def test_appended_lines_are_read_back(study):
    study.append_plan("file-system", PLAN)
    study.append_run(run(1, without_effect=["out*:cb_nodes"]))
    pairing = Pairing(pairs=3, ratio=2.0, low=1.5, high=2.5, confidence=0.95, default_s=2.0, tuned_s=1.0)
    verdict = Verdict(recommended={"out*:cb_nodes": "4"}, reason="faster", pairing=pairing)
    study.append_verdict("file-system", verdict)
    study.append_end("done", "2 places")
    again = Study.open(study.directory)
    assert again.head == study.head
    assert again.plans == {"file-system": PLAN}
    (read,) = again.runs
    assert read == run(1, without_effect=["out*:cb_nodes"], spent_s=read.spent_s)
    assert again.verdicts == {"file-system": verdict}
    assert [(end.reason, end.message) for end in again.ends] == [("done", "2 places")]
    assert again.settled("file-system") and not again.settled("burst-buffer")


def test_time_of_earlier_tuners_counts(study):
    """Of all that they did, runs that were interrupted included."""
    study.append_run(run(1))
    study._opened_s -= 100
    study.append_end("interrupted", "by a signal")
    study.close()
    with Study.open(study.directory, write=True) as again:
        assert 100 <= again.spent_s()
        again._opened_s -= 100
        again.append_run(run(2))
    assert 200 <= Study.open(study.directory).spent_s()


def test_each_line_has_one_member_as_documented(study):
    study.append_run(run(1))
    study.append_end("budget", "over")
    lines = [json.loads(line) for line in (study.directory / FILE_NAME).read_text().splitlines()]
    assert lines[0]["forebay_tune"] == 1
    assert [list(line) for line in lines[1:]] == [["run"], ["end"]]


def test_new_plan_reopens_its_storage(study):
    study.append_verdict("file-system", Verdict(recommended={}, reason="none faster"))
    assert study.settled("file-system")
    study.append_plan("file-system", PLAN)
    assert not study.settled("file-system")
    assert "file-system" in study.verdicts


@pytest.mark.parametrize("torn", [b'{"run": {"numb', b'{"run":', b"{", b"\xff\xfe"])
def test_torn_last_line_is_skipped_and_overwritten(study, torn):
    study.append_run(run(1))
    study.close()
    with (study.directory / FILE_NAME).open("ab") as file:
        file.write(torn)
    assert len(Study.open(study.directory).runs) == 1
    with Study.open(study.directory, write=True) as again:
        again.append_run(run(2))
    assert [one.number for one in Study.open(study.directory).runs] == [1, 2]


def test_study_with_an_unfinished_head_is_restarted(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b'{"forebay_tune": 1, "scr')
    Study.create(tmp_path, head()).close()
    assert Study.open(tmp_path).head == head()


def test_damaged_line_in_the_middle_is_an_error_that_names_it(study):
    study.append_run(run(1))
    study.close()
    with (study.directory / FILE_NAME).open("ab") as file:
        file.write(b'{"run": {"number": "three"}}\n')
    with pytest.raises(TuneError, match="line 3") as error:
        Study.open(study.directory)
    assert "damaged" in error.value.hint


def test_only_one_process_writes_a_study(study):
    with pytest.raises(TuneError, match="another forebay tune"):
        Study.open(study.directory, write=True)
    assert Study.open(study.directory).head == study.head  # readers may
    study.close()
    Study.open(study.directory, write=True).close()


def test_study_is_not_created_twice(study):
    study.close()
    with pytest.raises(TuneError, match="already"):
        Study.create(study.directory, head())
    assert Study.open(study.directory).head == head()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no study"),
        (b"hello\n", "no study"),
        (b'{"forebay_job": 1}\n', "no study"),
        (b'{"forebay_tune": 2}\n', "format 2"),
        (b'{"forebay_tune": 1, "script": 5}\n', "line 1"),
    ],
)
def test_file_that_is_no_study_is_refused(tmp_path, content, message):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(TuneError, match=message):
        Study.open(tmp_path)


def test_missing_study_is_reported(tmp_path):
    with pytest.raises(TuneError, match="No such file"):
        Study.open(tmp_path / "nothing")


def test_members_of_later_versions_are_ignored(study):
    study.close()
    with (study.directory / FILE_NAME).open("ab") as file:
        file.write(msgspec.json.encode({"weather": "fine"}) + b"\n")
    assert Study.open(study.directory).runs == []
