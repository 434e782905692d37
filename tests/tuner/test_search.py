"""The next step of a search, phase by phase, and how it ends."""

import math
import random

import pytest
from support import synthetic_machine
from support import plans
from support.strace import EVERY_POINT

from forebay.tune.model import Step, Verdict, key
from forebay.tune.decide import final_round
from forebay.tune.decide.search import counted, next_step
from forebay.tune.decide.statistics import history_of

BEST = {synthetic_machine.NODES: "8", synthetic_machine.COUNT: "8"}
RULES = {"canonical": lambda one, _: synthetic_machine.acting(one), "forbidden": lambda one, _: None}


def plan(runs_max=20, **changed):
    given = {
        "guesses": synthetic_machine.guesses(),
        "machine": synthetic_machine.MACHINE,
        "seed": 5,
        "runs_max": runs_max,
    }
    given |= {"parameters": synthetic_machine.PARAMETERS} | changed
    return plans.plan(given.pop("parameters"), **given)


def after(runs, step, seconds, status="ok"):
    """The runs with the one that the step asks for."""
    status = "failed" if seconds is None else status
    said = {"phase": step.phase, "status": status, "seconds": seconds, "replay": step.replay}
    return [*runs, plans.run(len(runs) + 1, step.configuration, **said)]


def searched(plan, seconds, runs=(), status=lambda one, number: "ok", **options):
    """A whole search; `seconds(configuration, number)`."""
    runs = list(runs)
    while isinstance(step := next_step(plan, runs, **RULES | options), Step):
        number = len(runs)
        one = step.configuration
        *runs, last = after(runs, step, seconds(one, number), status(one, number))
        runs.append(counted(plan, runs, last))
        assert len(runs) <= plan.runs_max
    return runs, step


def machine(seed=3, noise=0.03):
    """Times of a made-up machine; the same run has the same time, whenever it is asked for."""
    made = synthetic_machine.SyntheticMachine(seed)
    return lambda one, number: made.seconds(one) * math.exp(random.Random(number).gauss(0, noise))


def phases(runs):
    return [run.phase for run in runs]


@pytest.mark.parametrize("strategy", ["tpe", "greedy", "random"])
@pytest.mark.parametrize("runs_max", [12, 20, 40])
def test_every_strategy_finds_and_proves_a_gain_within_its_runs(strategy, runs_max):
    runs, verdict = searched(plan(runs_max, strategy=strategy), machine())
    assert verdict.recommended and verdict.pairing.low > 1 and verdict.pairing.pairs >= 2
    assert phases(runs)[:2] == ["default", "probe"] and phases(runs)[-1] == "final"
    last = [run.configuration for run in runs if run.phase == "final"]
    assert {} in last and verdict.recommended in last


@pytest.mark.parametrize("runs_max", [4, 5, 6, 8])
def test_few_runs_are_enough_for_a_probe_and_two_pairs(runs_max):
    runs, verdict = searched(plan(runs_max), machine())
    assert len(runs) <= runs_max and "final" in phases(runs)
    assert isinstance(verdict, Verdict)


@pytest.mark.parametrize("runs_max", [1, 2, 3])
def test_very_few_runs_keep_the_default(runs_max):
    runs, verdict = searched(plan(runs_max), machine())
    assert len(runs) <= runs_max and verdict.recommended == {}
    assert verdict.is_cut_short and "the budget left no room for " in verdict.reason


def test_small_budget_reports_what_was_measured():
    """Never that nothing was faster, where there was only no run left to show it."""
    fast = lambda one, number: 0.4 if one else 1.0  # noqa: E731
    told = {runs_max: searched(plan(runs_max), fast)[1] for runs_max in (1, 2, 3, 6)}
    assert told[1].reason.endswith("the search: no setting was timed")
    for runs_max in (2, 3):
        assert told[runs_max].reason.endswith("the best of 1 tried looked 2.50 times as fast as the default")
    assert [told[runs_max].is_cut_short for runs_max in told] == [True, True, True, False]
    assert told[6].recommended


@pytest.mark.parametrize("runs_max", [1, 2, 5, 10])
def test_replay_without_runs_for_a_setting_is_reported(runs_max):
    runs, verdict = searched(plan(runs_max, confirm_pairs=2), machine())
    assert verdict.recommended == {} and verdict.is_cut_short
    assert "the budget left no room for " in verdict.reason and not any(run.configuration for run in runs)


@pytest.mark.parametrize("runs_max", [2, 5, 8, 20])
def test_search_without_a_finalist_uses_all_its_runs(runs_max):
    runs, verdict = searched(plan(runs_max), lambda one, number: 1.5 if one else 1.0)
    assert len(runs) == runs_max and "final" not in phases(runs)
    assert verdict.is_cut_short and "nothing was found to be faster" in verdict.reason


def test_search_that_has_tried_everything_is_not_cut_short():
    few = [one for one in synthetic_machine.PARAMETERS if one.name == synthetic_machine.NODES]
    runs, verdict = searched(plan(20, parameters=few, guesses=()), lambda one, number: 1.5 if one else 1.0)
    assert len(runs) < 20 and not verdict.is_cut_short


@pytest.mark.parametrize("runs_max", [4, 5, 6, 7, 8])
def test_final_round_that_runs_ended_is_cut_short(runs_max):
    noise = lambda number: math.exp(random.Random(number).gauss(0, 0.3))  # noqa: E731
    _, verdict = searched(plan(runs_max), lambda one, number: (0.9 if one else 1.0) * noise(number))
    assert not verdict.recommended and verdict.is_cut_short


@pytest.mark.soak
def test_default_is_repeated_every_few_runs_and_no_setting_tried_twice():
    runs, _ = searched(plan(40), machine())
    search = [run for run in runs if run.phase != "final"]
    tried = [key(run.configuration) for run in search if run.configuration]
    assert len(tried) == len(set(tried))
    since = 0
    for run in search:
        since = 0 if not run.configuration else since + 1
        assert since <= 4


def test_final_runs_alternate_in_both_orders():
    runs, _ = searched(plan(20), machine())
    last = [key(run.configuration) for run in runs if run.phase == "final"]
    width = last.index(last[-1] if last[-1] else (), 1) if () not in last[1:] else last.index((), 1)
    assert last[0] == () and last[1 : width + 1][::-1][1:] == last[1:width][::-1]
    half = (width + 1) // 2
    assert last[:half] == last[half : width + 1][::-1]


def test_next_step_depends_on_plan_and_runs_only():
    """So that a killed tuner goes on as if nothing had been."""
    times = machine()
    runs, verdict = searched(plan(20), times)
    for stop in range(len(runs)):
        assert next_step(plan(20), runs[:stop], **RULES).configuration == runs[stop].configuration
    assert next_step(plan(20), runs, **RULES) == verdict


def test_more_runs_extend_a_finished_search():
    runs, _ = searched(plan(12), machine())
    longer, verdict = searched(plan(len(runs) + 10), machine(), runs)
    assert longer[: len(runs)] == runs and len(longer) > len(runs)
    assert "search" in phases(longer[len(runs) :]) and verdict.recommended


def test_exhausted_budget_starts_the_final_round():
    times = machine()
    runs = []
    for _ in range(6):
        step = next_step(plan(40), runs, **RULES)
        runs = after(runs, step, times(step.configuration, len(runs)))
    left = 4
    while isinstance(step := next_step(plan(40), runs, runs_left=left, **RULES), Step):
        assert step.phase == "final"
        runs, left = after(runs, step, times(step.configuration, len(runs))), left - 1
    assert left >= 0 and step.pairing is not None


def test_application_that_ignores_hints_is_reported_after_probes_of_two_kinds():
    runs, verdict = searched(
        plan(20), lambda one, number: 1.0 + number / 100, status=lambda one, _: "ineffective" if one else "ok"
    )
    assert phases(runs) == ["default", "probe", "probe"] and runs[2].configuration == BEST
    assert verdict.recommended == {} and "ignores hints" in verdict.reason and not verdict.is_cut_short


def test_application_with_one_kind_of_setting_is_probed_twice():
    one_kind = [
        one for one in synthetic_machine.PARAMETERS if one.name in (synthetic_machine.NODES, synthetic_machine.BUFFER)
    ]
    runs, verdict = searched(
        plan(20, parameters=one_kind, guesses=()), lambda *_: 1.0, status=lambda one, _: "ineffective" if one else "ok"
    )
    assert len(runs) == 3 and "ignores hints" in verdict.reason


def test_setting_that_helps_is_found_after_a_probe_without_effect():
    is_seen = lambda one: synthetic_machine.COUNT in one  # noqa: E731
    runs, verdict = searched(
        plan(20),
        lambda one, _: 0.5 if is_seen(one) else 1.0,
        status=lambda one, _: "ok" if is_seen(one) or not one else "ineffective",
    )
    assert runs[1].status == "ineffective" and verdict.recommended


def test_default_is_kept_without_a_faster_setting():
    noise = lambda number: math.exp(random.Random(number).gauss(0, 0.03))  # noqa: E731
    runs, verdict = searched(plan(20), lambda one, number: (1.5 if one else 1.0) * noise(number))
    assert verdict.recommended == {} and "nothing was found to be faster" in verdict.reason
    assert "final" not in phases(runs)


@pytest.mark.soak
def test_lucky_run_does_not_survive_the_final_round():
    lucky = {}

    def seconds(one, number):
        first = one and key(one) not in lucky
        lucky.setdefault(key(one), number)
        return 0.8 if first and number == 3 else 1.0 + 0.01 * (number % 3)

    _, verdict = searched(plan(20), seconds)
    assert verdict.recommended == {}


@pytest.mark.soak
def test_equal_settings_are_not_recommended():
    """Noise alone: over many searches hardly any recommendation, as the confidence says."""
    wrong, cases = 0, 200 if EVERY_POINT else 12
    for seed in range(cases):
        noise = lambda one, number, seed=seed: math.exp(random.Random(100 * seed + number).gauss(0, 0.15))
        _, verdict = searched(plan(12, seed=seed, strategy="random"), noise)
        wrong += bool(verdict.recommended)
    assert wrong <= 0.025 * cases


def final_step(runs, left):
    """What the final round does with so many runs left."""
    history = history_of(plan(40), runs, synthetic_machine.acting, lambda _: None)
    return final_round.step(history, runs, left)


def test_setting_is_not_recommended_for_one_pair():
    """The first finalist disappoints, and the next one is fast once."""
    first, second = {synthetic_machine.NODES: "8"}, {synthetic_machine.COUNT: "8"}
    times = [(10.0, {}), (7.0, first), (7.5, second), (10.0, {})]
    rounds = [(10.0, {}), (9.9, first), (5.0, second), (10.0, {})]
    runs = [
        plans.run(number, one, seconds=seconds, phase="final" if number > len(times) else "search")
        for number, (seconds, one) in enumerate(times + rounds, 1)
    ]
    step = final_step(runs, 4)
    assert isinstance(step, Step) and step.configuration == {}
    assert not final_step(runs, 0).recommended
    runs = after(runs, step, 10.0)
    step = final_step(runs, 3)
    assert isinstance(step, Step) and step.configuration == second
    assert final_step(after(runs, step, 5.0), 0).recommended == second


@pytest.mark.parametrize(
    ("final", "is_taken_back"),
    [
        ("", False),
        ("dB", False),
        ("dBAd", False),
        ("dABd", False),
        ("dAAd", True),
        ("dcAAd", True),
        ("dcAd", False),
        ("F", True),
    ],
)
def test_proof_is_taken_back_by_two_pairs_of_its_setting_alone(final, is_taken_back):
    """d: the default, A: the setting that was shown to be faster, c: A disturbed, F: A fails, B: another."""
    given = {"d": {}, "B": {synthetic_machine.COUNT: "8"}}
    status = {"F": "failed", "c": "contaminated"}
    runs = [
        plans.run(7 + at, given.get(one, BEST), phase="final", seconds=1.0, status=status.get(one, "ok"))
        for at, one in enumerate(final)
    ]
    assert final_round.contradicts(runs, BEST) == is_taken_back


def test_failed_settings_are_neither_repeated_nor_chosen():
    fast_but_wrong = lambda one, number: None if one.get(synthetic_machine.NODES) == "8" else 1.0 / (1 + len(one))  # noqa: E731
    runs, verdict = searched(plan(20), fast_but_wrong)
    failed = [key(run.configuration) for run in runs if run.status == "failed"]
    assert failed and len(failed) == len(set(failed))
    assert verdict.recommended and verdict.recommended.get(synthetic_machine.NODES) != "8"


def test_setting_that_fails_in_the_final_round_is_not_chosen():
    made, seen = synthetic_machine.SyntheticMachine(3), {}

    def seconds(one, number):
        seen[key(one)] = seen.get(key(one), 0) + 1
        return None if one == BEST and seen[key(one)] > 1 else made.seconds(one)

    _, verdict = searched(plan(20), seconds)
    assert verdict.recommended != BEST


def test_search_ends_with_a_report_if_all_settings_fail():
    runs, verdict = searched(plan(40), lambda one, number: None if one else 1.0)
    assert len(runs) < 12 and verdict.recommended == {} and "failed" in verdict.reason


def test_default_that_fails_twice_ends_the_search():
    runs, verdict = searched(plan(20), lambda one, number: None)
    assert len(runs) == 2 and "the default fails" in verdict.reason


def test_search_without_parameters_tries_nothing():
    runs, verdict = searched(plan(20, parameters=(), guesses=()), machine())
    assert len(runs) == 1 and "no setting" in verdict.reason


def test_disturbed_run_is_repeated_and_not_counted():
    made = synthetic_machine.SyntheticMachine(3)
    status = lambda one, number: "contaminated" if number == 2 else "ok"  # noqa: E731
    runs, verdict = searched(plan(20), lambda one, number: made.seconds(one) * (9 if number == 2 else 1), status=status)
    assert runs[2].configuration == runs[3].configuration and runs[3].phase == "repeat"
    assert verdict.recommended


def test_search_finishes_on_a_machine_that_is_always_disturbed():
    runs, verdict = searched(plan(20), machine(), status=lambda one, number: "contaminated")
    assert len(runs) <= 20 and verdict.recommended
    assert [run.status for run in runs].count("contaminated") == 4 < len(runs) - 4


def test_disturbed_final_run_does_not_hide_a_large_gain():
    made, late = synthetic_machine.SyntheticMachine(3), []

    def seconds(one, number):
        noise = math.exp(random.Random(number).gauss(0, 0.02))
        return made.seconds(one) * noise * (3 if number in late else 1)

    quiet, expected = searched(plan(20), seconds)
    first = phases(quiet).index("final")
    for number in (first, first + 1):
        late[:] = [number]
        _, verdict = searched(plan(20), seconds)
        assert verdict.recommended and verdict.pairing.low > 1
        assert made.seconds(verdict.recommended) <= 1.1 * made.seconds(expected.recommended)


def test_forbidden_settings_are_not_run():
    forbidden = lambda one, _: "it hangs" if one.get(synthetic_machine.COUNT) == "8" else None  # noqa: E731
    runs, _ = searched(plan(20), machine(), forbidden=forbidden)
    assert not any(run.configuration.get(synthetic_machine.COUNT) == "8" for run in runs)


@pytest.mark.soak
def test_replay_is_searched_and_the_job_confirms_in_two_pairs():
    io = synthetic_machine.SyntheticMachine(3)
    runs = []
    chosen = plan(30, confirm_pairs=2)
    while isinstance(step := next_step(chosen, runs, **RULES), Step):
        seconds = io.seconds(step.configuration) * math.exp(random.Random(len(runs)).gauss(0, 0.01))
        runs = after(runs, step, seconds if step.replay else seconds + 0.2)
    real = [run.configuration for run in runs if not run.replay]
    assert real == [{}, {}, step.recommended, step.recommended, {}]
    assert step.pairing.pairs == 2 and step.pairing.low > 1
    assert all(run.replay for run in runs[1:-4])


def test_setting_that_fails_on_the_job_is_not_recommended():
    io = synthetic_machine.SyntheticMachine(3)
    runs = []
    while isinstance(step := next_step(plan(30, confirm_pairs=2), runs, **RULES), Step):
        seconds = io.seconds(step.configuration)
        runs = after(runs, step, seconds if step.replay or not step.configuration else None)
    assert step.recommended == {} and "failed" in step.reason
