"""Whether a run's output is right: what programs leave and say, made up; and real runs of BTIO."""

import pytest

from forebay.profiles import sources
from forebay.profiles.model import File, Job, Layer, Profile, Program, Traffic
from forebay.tune.errors import TuneError
from forebay.tune.runs import output_check
from forebay.tune.runs.output_check import OutputCheck, Root
from support.plans import run

TRIAL = {"*:cb_nodes": "2"}
RESULT = '{{"kernel":"btio","verified":{}}}\n'


@pytest.fixture
def work(tmp_path):
    """The directory of runs, and next to it the records of runs."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "input").write_text("input")
    return tmp_path / "work"


def judge_of(work, **options):
    return OutputCheck([Root("", "/as/seen", work)], **options)


def wrote(*names, layer="MPI-IO", uses_mpi=True):
    """A profile in which a program wrote these."""
    layers = {layer: Layer(read=Traffic(), write=Traffic(calls=1, bytes=8))}
    files = [File(path=f"/as/seen/{name}", layers=layers) for name in names]
    return Profile(source="forebay", path="", job=Job(), programs=[Program(files=files, uses_mpi=uses_mpi)])


def judged(judge, work, configuration, contents, said="", profile=None):
    """What becomes of a run that leaves files of these contents."""
    for path in work.iterdir():
        if path.name != "input":
            path.unlink()
    for name, content in contents.items():
        (work / name).write_text(content)
    record = work.parent / f"record-{len(list(work.parent.iterdir()))}"
    record.mkdir()
    (record / "output.txt").write_text(said)
    return judge.judge(run(1, configuration), profile or wrote(*contents), record)


def test_output_equal_to_the_default_is_accepted(work):
    judge = judge_of(work)
    assert judged(judge, work, {}, {"a.out": "right"}).checked == "the same bytes: a.out"
    assert not judge.knows_contents
    trial = judged(judge, work, TRIAL, {"a.out": "right"})
    assert (trial.right, trial.checked) == (True, "the same bytes: a.out")
    wrong = judged(judge, work, TRIAL, {"a.out": "wrong"})
    assert (wrong.right, wrong.reason) == (False, "not as by default (seen in one default run only): a.out")
    gone = judged(judge, work, TRIAL, {})
    assert "a.out (missing)" in gone.reason and not gone.right
    more = judged(judge, work, TRIAL, {"a.out": "right", "b.out": "?"})
    assert "b.out (new)" in more.reason and not more.right


def test_output_that_varies_between_runs_is_named_and_not_compared(work):
    judge = judge_of(work)
    judged(judge, work, {}, {"a.out": "right", "random": "1"})
    again = judged(judge, work, {}, {"a.out": "right", "random": "2"})
    assert again.right and again.reason == "output differs from run to run: random; give --check (HDF5: h5diff)"
    assert (judge.differs, again.checked) == (["random"], "the same bytes: a.out")
    assert judged(judge, work, TRIAL, {"a.out": "right", "random": "3"}).right
    assert judged(judge, work, TRIAL, {"a.out": "wrong", "random": "1"}).reason == "not as by default: a.out"


def test_logs_only_have_to_exist(work):
    judge = judge_of(work)
    profile = wrote("log.12345", "rsl.out", layer="STDIO")
    judged(judge, work, {}, {"log.12345": "at 10:00", "rsl.out": "at 10:00"}, profile=profile)
    same = judged(judge, work, TRIAL, {"log.67890": "at 11:00", "rsl.out": "at 11:00"}, profile=profile)
    assert same.right and same.checked == "its status alone: nothing that an MPI program wrote can be compared"
    gone = judged(judge, work, TRIAL, {"log.67890": ""}, profile=profile)
    assert not gone.right and "rsl.out (missing)" in gone.reason
    serial = wrote("rsl.out", "log.1", layer="POSIX", uses_mpi=False)
    assert judged(judge, work, TRIAL, {"log.67890": "", "rsl.out": "later"}, profile=serial).right


def test_hint_file_of_a_trial_is_no_output(work):
    judge = judge_of(work)
    judged(judge, work, {}, {})
    assert judged(judge, work, TRIAL, {".job.romio_hints": "cb_nodes 2"}, profile=wrote()).right


@pytest.mark.parametrize(
    ("said", "verified"),
    [
        ("", None),
        ("no JSON { at all\n", None),
        (RESULT.format("true"), True),
        ("text\n" + RESULT.format("true") * 2, True),
        (RESULT.format("true") + RESULT.format("null"), None),
        (RESULT.format("null") + RESULT.format("false"), False),
        ('{"verified": not JSON\n', None),
        ('{"verified": "yes"}\n', None),
        ('["verified"]\n', None),
        (RESULT.format("true") + "{" + '"verified":false' + " " * output_check.LINE_BYTES_MAX + "}\n", True),
    ],
)
def test_verification_messages_of_programs_are_read(tmp_path, said, verified):
    (tmp_path / "output.txt").write_text(said)
    assert output_check.verified_by_program(tmp_path / "output.txt") is verified


def test_verification_of_the_program_overrides_different_bytes(work):
    judge = judge_of(work)
    right, wrong = RESULT.format("true"), RESULT.format("false")
    assert judged(judge, work, {}, {"a": "1"}, right).checked == "verified by the program"
    assert judge.knows_contents
    assert judged(judge, work, TRIAL, {"a": "another layout"}, right).right
    assert "what it wrote is wrong" in judged(judge, work, TRIAL, {"a": "1"}, wrong).reason
    silent = judged(judge, work, TRIAL, {"a": "1"})
    assert not silent.right and "did not verify" in silent.reason


def test_check_command_decides_where_the_program_does_not_verify(work):
    statuses = iter([0, 0, 3])
    judge = judge_of(work, check=lambda: next(statuses))
    assert judge.knows_contents
    assert judged(judge, work, {}, {"a": "1"}).checked == "the check command"
    assert judged(judge, work, TRIAL, {"a": "2"}).right
    assert judged(judge, work, TRIAL, {"a": "2"}).reason == "the check command ended with status 3"
    wrong = judged(judge, work, TRIAL, {"a": "2"}, RESULT.format("false"))
    assert not wrong.right, "a program that finds errors is not overruled, and no status was left to ask for"


def test_continued_tuner_compares_with_the_same_default_run(work):
    first = judge_of(work)
    judged(first, work, {}, {"a": "1"})
    [reference] = work.parent.glob(f"record-*/{output_check.REFERENCE}")
    later = judge_of(work, reference=reference.parent)
    assert judged(later, work, TRIAL, {"a": "1"}).right and not judged(later, work, TRIAL, {"a": "2"}).right
    judged(later, work, {}, {"a": "3"})
    assert judge_of(work, reference=reference.parent).differs == ["a"]
    reference.write_text('{"torn')
    with pytest.raises(TuneError, match="cannot be read"):
        judge_of(work, reference=reference.parent)


def test_output_is_not_judged_without_a_default_run(work):
    with pytest.raises(TuneError, match="no default run was judged"):
        judged(judge_of(work), work, TRIAL, {"a": "1"})


def test_outputs_in_the_allocation_and_elsewhere_are_compared(work, tmp_path):
    """Of the same names in each series, wherever its allocation lies; what is under no root, by its path."""
    namespace, elsewhere = tmp_path / "root" / "mnt" / "bb" / "77", tmp_path / "root" / "scratch"
    namespace.mkdir(parents=True)
    elsewhere.mkdir()
    (namespace / "b.out").write_text("b")
    (elsewhere / "c.out").write_text("c")
    roots = [Root("", "/as/seen", work), Root("DW_JOB_STRIPED", "/mnt/bb/77", namespace)]
    judge = OutputCheck(roots, prefix=str(tmp_path / "root"))
    profile = wrote("a.out")
    for path in ("/mnt/bb/77/b.out", "/scratch/c.out"):
        profile.programs[0].files.append(File(path=path, layers=profile.programs[0].files[0].layers))
    found = judged(judge, work, {}, {"a.out": "a"}, profile=profile)
    assert found.checked == "the same bytes: /scratch/c.out, DW_JOB_STRIPED/b.out, a.out"
    (namespace / "b.out").write_text("other")
    assert "DW_JOB_STRIPED/b.out" in judged(judge, work, TRIAL, {"a.out": "a"}, profile=profile).reason


def test_outputs_of_a_real_run_are_compared_and_damage_is_found(build, job):
    (job.directory / "deck").write_text("w\n0\n2\n12 12 12\n.\n")
    judge = OutputCheck([Root("", str(job.directory), job.directory)])

    def judged_run(configuration, flags="", after=":"):
        job.script(f"mpiexec -n 4 {build / 'kernels' / 'btio'} {flags} deck\n{after}")
        done = job.run()
        assert done.returncode == 0, done.stderr
        record = job.records()[-1]
        (record / "output.txt").write_text(done.stdout)
        return judge.judge(run(1, configuration), sources.open_path(record), record)

    assert judged_run({}).checked == "the same bytes: btio.full.out" and not judge.knows_contents
    damaged = judged_run(TRIAL, after="printf x | dd of=btio.full.out bs=1 seek=100 conv=notrunc status=none")
    assert not damaged.right and damaged.reason.endswith(": btio.full.out")
    assert judged_run(TRIAL, "--verify").checked == "verified by the program"
