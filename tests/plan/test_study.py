"""`forebay plan study`: the tuner's own search, with the model in place of runs."""

import json

import pytest

from forebay.cli.plan.model_tuning import study
from forebay.plan import cases
from forebay.plan.parameters import fitted
from forebay.plan.planner import Question
from forebay.plan.search import Searcher

QUESTION = Question(machine=cases.machine("shaheen2"), patterns=(cases.btio_mpi(),))
WORDS = (
    "study", "--machine", "shaheen2", "--access", "collective", "--size", "100GB", "--calls", "10",
    "--segment", "1280B", "--ranks", "1024", "--nodes", "32",
)  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return study(QUESTION, "datawarp", runs_max=24, strategy="tpe", seed=3, known=[(32, 1 << 20)])


def test_study_has_all_numbers_of_nodes_from_1_to_256(found):
    assert [point.servers for point in found.points] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert all(0 < point.runs <= 24 for point in found.points)


@pytest.mark.soak
def test_tuner_finds_nearly_the_best_that_the_model_knows(found):
    searcher = Searcher(
        machine=QUESTION.machine,
        storage=QUESTION.machine.storage["datawarp"],
        patterns=QUESTION.patterns,
        fixed=QUESTION.fixed,
        parameters=fitted().parameters,
    )
    for point in found.points:
        best = searcher.best_on(point.servers).io_s
        assert best * 0.97 <= point.best_s <= 1.08 * best, point
        assert point.best_s <= point.default_s


@pytest.mark.soak
def test_best_point_is_shown_next_to_known_settings(found):
    (known,) = found.known
    assert (known.aggregators, known.stripe_bytes) == (32, 1 << 20)
    assert known.io_s >= found.best.best_s * 0.99


@pytest.mark.soak
def test_same_seed_gives_the_same_study():
    once = study(QUESTION, "datawarp", runs_max=12, strategy="random", seed=5)
    assert once == study(QUESTION, "datawarp", runs_max=12, strategy="random", seed=5)


@pytest.mark.soak
def test_command_prints_points_best_and_known(job):
    text = job.command("plan", *WORDS, "--storage", "datawarp", "--known", "32:1MiB", "--runs", "8", "--seed", "1")
    assert text.returncode == 0, text.stderr
    assert "known: " in text.stdout and "datawarp: " in text.stdout and "seed 1" in text.stderr
    told = job.command("plan", *WORDS, "--storage", "lustre", "--runs", "8", "--seed", "1", "--json")
    assert json.loads(told.stdout)["points"][-1]["servers"] == 144


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["0 storages", "--storage"]),
        (["--storage", "datawarp", "--known", "many"], ["--known many", "32:1MiB"]),
        (["--storage", "datawarp", "--known", "0:1MiB"], ["--known 0:1MiB"]),
        (["--storage", "datawarp", "--strategy", "luck"], ["no search strategy is called luck"]),
        (["--storage", "datawarp", "--access", "independent"], ["collective I/O", "--access collective"]),
    ],
)
def test_wrong_request_is_refused_with_the_remedy(job, words, said):
    done = job.command("plan", *WORDS, *words)
    assert done.returncode == 1
    for word in said:
        assert word in done.stderr, done.stderr
    assert "\nhint: " in done.stderr and "Traceback" not in done.stderr
