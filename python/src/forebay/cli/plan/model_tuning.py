"""The tuner's search with the model in place of runs: what `forebay tune` would find on a far machine."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forebay.plan.answer import KnownPoint, Study, StudyPoint
from forebay.plan.errors import PlanError
from forebay.plan.model import predict
from forebay.plan.parameters import fitted
from forebay.plan.planner import Question
from forebay.plan.search import Fixed, Searcher
from forebay.tune.decide.search import next_step
from forebay.tune.model import Configuration, Guess, Parameter, Plan, Run, Step
from forebay.tune.model import Machine as Ranks

#: As ExpBB's file patterns: all files of the job.
_AGGREGATORS, _STRIPE = "*:cb_nodes", "*:striping_unit"
_SOURCE = "KAUST's burst buffer talk (2018)"


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """One number of servers: the plan of the search, and what evaluates a configuration."""

    searcher: Searcher
    servers: int
    plan: Plan

    def seconds(self, configuration: Configuration) -> float:
        """What the model predicts for hints; hints that it lacks keep their default."""
        (pattern,) = self.searcher.patterns
        default = self.searcher.default_on(self.servers).settings[0]
        settings = msgspec.structs.replace(
            default,
            aggregators=int(configuration.get(_AGGREGATORS, default.aggregators)),
            stripe_bytes=int(configuration.get(_STRIPE, default.stripe_bytes)),
        )
        machine, storage = self.searcher.machine, self.searcher.storage
        return predict(pattern, machine, storage, settings, self.searcher.parameters).seconds


def study(
    question: Question,
    storage: str,
    *,
    runs_max: int,
    strategy: str,
    seed: int,
    known: Sequence[tuple[int, int]] = (),
) -> Study:
    """The tuner's study for each number of servers. Raises PlanError for what cannot be tuned."""
    if len(question.patterns) != 1 or question.patterns[0].access != "collective":
        hint = "describe one pattern with --access collective"
        raise PlanError("the tuner sets hints of collective I/O", hint)
    chosen = question.machine.choose(storage)
    searcher = Searcher(
        machine=question.machine,
        storage=chosen,
        patterns=question.patterns,
        fixed=Fixed(servers=question.fixed.servers, jobs=question.fixed.jobs),
        parameters=fitted().parameters,
        capacity_bytes=question.needed_bytes if chosen.kind == "datawarp" else 0,
        compute_s=question.compute_s,
    )
    points = [_point(searcher, servers, runs_max, strategy, seed) for servers in searcher.server_counts()]
    best = min(points, key=lambda one: (searcher.price(one.servers, one.best_s).node_s, one.servers))
    return Study(
        machine=question.machine.name,
        storage=storage,
        strategy=strategy,
        points=points,
        best=best,
        known=[_known(searcher, *settings) for settings in known],
    )


def _known(searcher: Searcher, aggregators: int, stripe_bytes: int) -> KnownPoint:
    """These settings on the number of servers where they cost the fewest node-seconds."""
    fixed = msgspec.structs.replace(searcher.fixed, aggregators=aggregators, stripe_bytes=stripe_bytes)
    given = msgspec.structs.replace(searcher, fixed=fixed)
    found = given.recommend(given.best_on(servers) for servers in searcher.server_counts())
    return KnownPoint(
        servers=found.servers, aggregators=aggregators, stripe_bytes=stripe_bytes, io_s=found.io_s
    )


def _point(searcher: Searcher, servers: int, runs_max: int, strategy: str, seed: int) -> StudyPoint:
    plan = _plan(searcher, servers, runs_max, strategy, seed)
    searched = Searched(searcher=searcher, servers=servers, plan=plan)
    runs: list[Run] = []
    while isinstance(
        step := next_step(searched.plan, runs, canonical=_canonical, forbidden=_never_forbidden), Step
    ):
        runs.append(_run(searched, step, len(runs) + 1))
    default_s = searched.seconds({})
    best = min(runs, key=lambda run: run.seconds or default_s)
    default = searcher.default_on(servers).settings[0]
    return StudyPoint(
        servers=servers,
        runs=len(runs),
        default_s=default_s,
        best_s=searched.seconds(step.recommended),
        fastest_run_s=best.seconds or default_s,
        aggregators=int(step.recommended.get(_AGGREGATORS, default.aggregators)),
        stripe_bytes=int(step.recommended.get(_STRIPE, default.stripe_bytes)),
        verdict=step.reason,
    )


def _run(searched: Searched, step: Step, number: int) -> Run:
    seconds = searched.seconds(step.configuration)
    return Run(
        number=number,
        place="burst-buffer",
        phase=step.phase,
        configuration=step.configuration,
        status="ok",
        seconds=seconds,
        job_s=seconds,
        io_s=seconds,
    )


def _plan(searcher: Searcher, servers: int, runs_max: int, strategy: str, seed: int) -> Plan:
    """Hints to try, and the guesses of ExpBB: four and sixteen aggregators for each server."""
    (pattern,) = searcher.patterns
    aggregators, stripes = searcher.values_to_try(servers)
    default = searcher.default_on(servers).settings[0]
    parameters = [
        _parameter(_AGGREGATORS, aggregators, default.aggregators, "more processes write"),
        _parameter(_STRIPE, stripes, default.stripe_bytes, "each call reaches more aggregators"),
    ]
    guesses = [
        Guess(
            configuration={_AGGREGATORS: str(factor * servers)},
            reason=f"{factor} aggregators for each server",
        )
        for factor in (4, 16)
        if factor * servers in aggregators and factor * servers != default.aggregators
    ]
    return Plan(
        parameters=tuple(one for one in parameters if one.values),
        refusals=(),
        guesses=tuple(guesses),
        machine=Ranks(ranks=pattern.ranks, nodes=pattern.nodes),
        strategy=strategy,
        seed=seed,
        runs_max=runs_max,
    )


def _parameter(name: str, values: list[int], default: int, reason: str) -> Parameter:
    return Parameter(
        name=name,
        setting=name.partition(":")[2],
        pattern="*",
        values=tuple(str(value) for value in sorted(values) if value != default),
        ordered=True,
        default=str(default),
        reason=reason,
        source=_SOURCE,
    )


def _canonical(configuration: Configuration, _plan: Plan) -> Configuration:
    """All settings act, and one that is the default is no setting."""
    defaults = {one.name: one.default for one in _plan.parameters}
    return {name: value for name, value in configuration.items() if value != defaults.get(name)}


def _never_forbidden(_configuration: Configuration, _plan: Plan) -> None:
    """No combination is forbidden: the values are those that balance."""
