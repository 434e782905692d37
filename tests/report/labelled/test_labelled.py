"""The advice on labelled runs: nearly all that is said is true, and nearly all that is true is said."""

import re
import sys

import pandas
import pytest

from forebay.advice.advise import findings
from forebay.advice.advise import paragraph
from forebay.profiles import darshan_log, sources, time_parts
from forebay.report.verdict import verdict
from support.labelled.cases import CASES, TESTS
from support.labelled.judge import Score
from support.mpi import PROJECT

PRECISION_MIN, RECALL_MIN = 0.95, 0.9
LOGS = TESTS / "report" / "labelled"

# The first test makes the logs of all cases.
pytestmark = [pytest.mark.xdist_group("labelled"), pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def worker():
    """The reader of logs, in this process; it has a process of its own in `report`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pandas", pandas)  # which the reader replaces
        from forebay.profiles import darshan_worker
    return darshan_worker


@pytest.fixture(scope="module")
def scores(worker, tmp_path_factory):
    folder, scores = tmp_path_factory.mktemp("logs"), {}
    for case in CASES:
        log = case.log(folder)
        found = findings(darshan_log.profile(log, worker.log(str(log))))
        scores.setdefault(case.kind, Score()).add(case, {one.code for one in found if one.level != "note"})
    return scores


@pytest.mark.parametrize("kind", ["genuine", "chosen", "held out"])
def test_advice_on_labelled_runs_is_precise_and_complete(scores, kind):
    score = scores[kind]
    assert score.precision() >= PRECISION_MIN, score.failures
    assert score.recall() >= RECALL_MIN, score.failures


def test_a_third_of_the_cases_is_held_out_and_many_are_healthy():
    held_out = [case for case in CASES if case.kind == "held out"]
    healthy = [case for case in CASES if not case.expected]
    assert len(CASES) >= 40 and 3 * len(held_out) >= len(CASES)
    assert 4 * len(healthy) >= len(CASES)
    assert {case.name for case in CASES if not case.expected} & {case.name for case in held_out}


def test_every_finding_that_darshan_can_show_has_a_case():
    """Hints, aggregators of each call, and how a program ended are in Forebay's records and Cray's statistics only."""
    elsewhere = {"idle-aggregators", "uneven-aggregators", "hints-without-effect", "stripe-unit"}
    elsewhere |= {"aborted", "no-finalize", "not-closed", "emulated", "little-io"}
    rows = (PROJECT / "docs" / "reference" / "advice.md").read_text().splitlines()
    expected = {code for row in rows if row.count("|") == 5 for code in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    assert expected - elsewhere == {code for case in CASES for code in case.expected}


def report(name):
    """What a report says first, its findings and notes."""
    profile = sources.open_path(LOGS / f"{name}.darshan")
    found = findings(profile)
    return profile, found, f"{verdict(profile)} {paragraph(profile, found)}"


def test_read_modify_write_of_holes_is_reading_and_not_exchange():
    """72 GiB become 284 GiB: each of 56 aggregators reads for about 204 s of 727 s."""
    _, found, said = report("e3sm_io_heatmap_only")
    assert "Reading in order to write" in said and "Exchange" not in said
    assert "71.8 GiB became 282 GiB of system writes" in found[0].title
    assert found[0].lines == ("export MPICH_MPIIO_HINTS='can_I_out*.nc:romio_ds_write=disable'",)


@pytest.mark.soak
def test_slow_storage_target_is_named_and_small_inputs_are_not():
    _, found, said = report("sample-badost")
    assert "storage target 14 take 9 min 06 s" in said and "other 23 take 11.3 s" in said
    assert "few ranks" not in said
    assert [one.code for one in found] == ["slow-target"]


def test_metadata_by_one_rank_is_named():
    _, found, said = report("snyder_fidgetspinnerB")
    assert "took 29 %" in said and "Rank 0 alone, of 128, asks 128 times" in found[0].title


def test_reading_again_comes_before_syncs():
    _, found, _ = report("combined")
    assert [one.code for one in found] == ["read-again", "many-syncs"]
    assert found[0].seconds == pytest.approx(84, abs=1) and found[1].seconds == pytest.approx(8.4, abs=0.1)


@pytest.mark.soak
def test_one_stripe_in_each_call_is_buffered():
    _, found, said = report("imbalanced-io")
    assert {one.code for one in found} == {"one-stripe"} and "buffer" not in said
    # The names of the files have no directory below the mount, whose layout is nobody's to set.
    assert not any(one.lines for one in found)


def test_mean_rank_waits_for_the_reads_of_the_slowest_aggregator():
    """MPI-IO's calls of a mean rank take 685 s; the slowest aggregator reads for 205 s."""
    profile, _, _ = report("e3sm_io_heatmap_only")
    mean = {one.layer: one.parts for one in time_parts.time_split(profile.programs[0])}
    assert mean["MPI-IO"].rmw == pytest.approx(205, abs=2)
    assert mean["POSIX"].rmw == pytest.approx(56 / 512 * 200, abs=2)
    assert mean["MPI-IO"].sum() == pytest.approx(685.9, abs=1)
