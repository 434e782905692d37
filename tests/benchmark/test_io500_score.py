"""The score of IO500 against published rows, and the layout of its summary."""

import math

import pytest

from forebay.bench import result, summary
from forebay.bench.phases import PHASES
from forebay.bench.result import Io500, PhaseResult
from forebay.bench.scoring import Scores, geometric_mean, scores

#: The sample in the README of the IO500 benchmark.
README = {
    "ior-easy-write": 0.186620,
    "mdtest-easy-write": 103.300821,
    "ior-hard-write": 0.001313,
    "mdtest-hard-write": 58.939081,
    "find": 1486.435084,
    "ior-easy-read": 1.575557,
    "mdtest-easy-stat": 839.392805,
    "ior-hard-read": 2.272671,
    "mdtest-hard-stat": 1212.558124,
    "mdtest-easy-delete": 160.765642,
    "mdtest-hard-read": 275.011939,
    "mdtest-hard-delete": 132.015851,
}
#: Rows of the list of SC18: bandwidth in GiB/s, metadata in kIOPS, score.
SC18 = [(88.20, 1522.69, 366.47), (554.23, 46.58, 160.67), (71.40, 352.75, 158.71), (560.10, 33.89, 137.78)]


def test_sample_of_the_benchmark_has_its_published_score():
    found = scores(README)
    assert found.bandwidth_gib_per_s == pytest.approx(0.17210, abs=1e-5)
    assert found.metadata_kiops == pytest.approx(292.625, abs=5e-4)
    assert found.total == pytest.approx(7.0967, abs=5e-5)


@pytest.mark.parametrize("bandwidth, metadata, total", SC18)
def test_published_rows_have_their_score(bandwidth, metadata, total):
    of_phases = {phase.name: bandwidth if phase.group == "bandwidth" else metadata for phase in PHASES}
    assert scores(of_phases).total == pytest.approx(total, rel=1e-4)


def test_four_phases_count_for_bandwidth_and_eight_for_metadata():
    groups = [phase.group for phase in PHASES]
    assert (groups.count("bandwidth"), groups.count("metadata")) == (4, 8)
    assert scores(README | {"ior-rnd4K-easy-read": 1e9, "timestamp": 5.0}) == scores(README)


def test_phase_without_a_score_leaves_the_root_of_the_others():
    less = {name: value for name, value in README.items() if name != "find"} | {"ior-hard-write": 0.0}
    found = scores(less)
    assert found.bandwidth_gib_per_s == pytest.approx((0.186620 * 1.575557 * 2.272671) ** (1 / 3))
    assert scores({}) == Scores(0.0, 0.0, 0.0)


def test_mean_of_large_values_is_finite():
    assert geometric_mean([1e300] * 8) == pytest.approx(1e300)
    assert math.isfinite(scores(dict.fromkeys(README, 1e200)).total)


def phase(name, score, time_s, **more):
    (known,) = [one for one in PHASES if one.name == name]
    fields = dict.fromkeys(PhaseResult.__struct_fields__)
    about = {"name": name, "scored": known.group is not None, "score": score, "unit": known.unit, "time_s": time_s}
    return PhaseResult(**fields | about | {"invalid_because": [], "started_unix_s": 0.0, "command": ""} | more)


def test_summary_has_the_layout_of_the_benchmark():
    """The lines are those of a submission of 2024."""
    run = Io500(
        **dict.fromkeys(Io500.__struct_fields__)
        | {
            "version": "1.2",
            "reduced": True,
            "phases": [
                phase("ior-easy-write", 352.803032, 386.698),
                phase("timestamp", 0.0, 0.0),
                phase("find", 2872.215129, 24.132),
                phase("mdtest-hard-write", 3.5, 1.0, invalid_because=["short"]),
            ],
            "scores": Scores(122.312630, 192.355126, 153.386640),
            "valid": True,
        }
    )
    assert summary.summary(run).splitlines() == [
        "IO500 version forebay-1.2 (reduced, not an official submission)",
        "[RESULT]       ior-easy-write      352.803032 GiB/s : time 386.698 seconds",
        "[      ]            timestamp        0.000000 kIOPS : time 0.000 seconds",
        "[RESULT]                 find     2872.215129 kIOPS : time 24.132 seconds",
        "[RESULT]    mdtest-hard-write        3.500000 kIOPS : time 1.000 seconds [INVALID]",
        "[SCORE ] Bandwidth 122.312630 GiB/s : IOPS 192.355126 kiops : TOTAL 153.386640",
    ]
    run.valid, run.reduced = False, False
    assert summary.score_line(run).endswith("TOTAL 153.386640 [INVALID]")
    assert summary.version_line(run) == "IO500 version forebay-1.2 (not an official submission)"


@pytest.mark.parametrize(
    "writes, score, time_s, stonewall_s, count",
    [
        (True, 1.0, 301.0, 300, 0),
        (True, 1.0, 299.9, 300, 2),  # below its own stonewall, and below that of the rules
        (True, 1.0, 10.5, 10, 1),
        (False, 1.0, 0.1, 300, 0),
        (False, 0.0, 0.1, 300, 1),
    ],
)
def test_phase_that_wrote_for_too_short_a_time_or_has_no_score_is_invalid(writes, score, time_s, stonewall_s, count):
    assert len(result.faults("a-phase", writes, score, time_s, stonewall_s)) == count
