"""Whatever is asked of whichever machine: a finite answer, or a refusal with a remedy."""

import math
import pathlib
import random

import msgspec

from forebay.plan.errors import PlanError
from forebay.plan.machine import read_machine
from forebay.plan.pattern import Calls, Pattern
from forebay.plan.planner import Question, plan, sweep
from forebay.plan.search import Fixed

MACHINES = [
    read_machine(path) for path in sorted((pathlib.Path(__file__).resolve().parents[2] / "machines").glob("*.toml"))
]


def drawn(draw, low, high):
    """A number between, equal in each decade."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def pattern(draw):
    ranks = int(drawn(draw, 1, 1e6))
    total = drawn(draw, 1, 1e16)
    calls = int(drawn(draw, 1, 1e4))
    access = draw.choice(["serial", "file-per-process", "independent", "collective"])
    return Pattern(
        name=draw.choice(["a", "b.nc", "c d*[x]"]),
        direction=draw.choice(["read", "write"]),
        access=access,
        ranks=ranks,
        nodes=int(drawn(draw, 1, ranks + 0.5)),
        total_bytes=total,
        transfer_bytes=min(total, drawn(draw, 1, 1e10)),
        calls=(Calls(count=calls, total_bytes=total / calls),) if draw.random() < 0.5 else (),
        segment_bytes=drawn(draw, 1, 1e9) if draw.random() < 0.5 else None,
        is_replicated=draw.random() < 0.1,
        is_random=draw.random() < 0.2,
        is_interleaved=draw.random() < 0.3,
        files=int(drawn(draw, 1, 1e6)),
    )


def question(draw):
    return Question(
        machine=draw.choice(MACHINES),
        patterns=tuple(pattern(draw) for _ in range(draw.choice([1, 1, 1, 2, 4]))),
        fixed=Fixed(
            servers=draw.choice([None, None, 1, 7, 300]),
            aggregators=draw.choice([None, None, 1, 16, 5000]),
            stripe_bytes=draw.choice([None, None, 4096, 1 << 20, 1 << 33]),
            buffer_bytes=draw.choice([None, None, 1 << 16]),
            cb_align=draw.choice([None, 0, 1, 2]),
            data_sieving=draw.random() < 0.2,
            jobs=draw.choice([1, 1, 5]),
        ),
        capacity_bytes=draw.choice([0, 0, int(drawn(draw, 1, 1e17))]),
        compute_s=draw.choice([0.0, 3600.0]),
        stage_in_bytes=draw.choice([0.0, 1e12]),
    )


def test_random_questions_have_finite_answers_or_are_refused_with_a_remedy():
    draw = random.Random(11)
    answered = refused = 0
    for _ in range(300):
        try:
            asked = question(draw)
            told = plan(asked)
            curves = sweep(asked) if draw.random() < 0.1 else None
        except PlanError as error:
            assert error.hint, error
            refused += 1
            continue
        answered += 1
        for one in told.storages:
            assert (one.unsuitable is None) == (one.recommended is not None)
            if one.recommended is None:
                continue
            for sized in filter(None, (one.default, one.given, one.recommended)):
                assert 0 < sized.low_s <= sized.io_s <= sized.high_s < math.inf
                assert 0 < sized.efficiency <= 1.0001, (one.storage, sized)
            assert one.recommended.io_s <= 1.12 * one.default.io_s or asked.fixed != Fixed(jobs=asked.fixed.jobs)
            assert all("\n" not in line for line in [*one.lines, *one.reasons, *one.outside])
        assert msgspec.json.decode(msgspec.json.encode(told)) and (curves is None or curves.curves)
    assert answered > 50 and refused > 50
