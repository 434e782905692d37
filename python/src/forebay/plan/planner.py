"""Puts a plan together: each storage of a machine with its best settings, its band and its reasons."""

from __future__ import annotations

import math

import msgspec

from forebay.plan import reasons
from forebay.plan.answer import VERSION, Curve, Described, Granted, Plan, Point, Sized, StoragePlan, Sweep
from forebay.plan.band import Band, band, notes_of, widest
from forebay.plan.errors import PlanError
from forebay.plan.in_script import ScriptSettings
from forebay.plan.job_lines import changes, lines
from forebay.plan.limits import check_job, why_too_small, why_unsuitable
from forebay.plan.machine import Machine, Storage
from forebay.plan.parameters import Fitted, fitted
from forebay.plan.pattern import Pattern
from forebay.plan.search import Fixed, Searcher, Trial, check_capacity
from forebay.plan.staging import BURST_BUFFERS, permanent_storage, staging
from forebay.plan.units import size_text

#: Published runs were up to 8 % faster than the published peaks of their servers; no band promises much more.
PEAK_EXCEEDED_MAX = 1.1


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A job and a machine."""

    machine: Machine
    patterns: tuple[Pattern, ...]
    fixed: Fixed = Fixed()
    storages: tuple[str, ...] = ()  # names; empty: all
    capacity_bytes: int = 0  # that the job needs in a burst buffer; 0: what it writes
    compute_s: float = 0.0  # of the job, besides I/O
    has_local: bool = False  # the script asks for the storage of its nodes already
    stage_in_bytes: float | None = None  # None: what is read; 0: it is in a persistent allocation
    script: str | None = None
    script_settings: ScriptSettings | None = None  # what the script sets by itself
    profile: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Of the job."""
        return max(pattern.ranks for pattern in self.patterns)

    @property
    def nodes(self) -> int:
        """Of the job."""
        return max(pattern.nodes for pattern in self.patterns)

    @property
    def written_bytes(self) -> float:
        """Output of all patterns."""
        return sum(pattern.total_bytes for pattern in self.patterns if pattern.direction == "write")

    @property
    def read_bytes(self) -> float:
        """What is read of files that the job does not write."""
        written = {pattern.name for pattern in self.patterns if pattern.direction == "write"}
        read = (pattern for pattern in self.patterns if pattern.direction == "read")
        return sum(pattern.total_bytes for pattern in read if pattern.name not in written)

    @property
    def input_bytes(self) -> float:
        """What must be staged in: as given, else what is read."""
        return self.read_bytes if self.stage_in_bytes is None else self.stage_in_bytes

    @property
    def is_persistent(self) -> bool:
        """Whether the input is in a persistent allocation."""
        return self.stage_in_bytes == 0 and self.read_bytes > 0

    @property
    def held_bytes(self) -> float:
        """Output and input."""
        return self.written_bytes + (self.input_bytes or self.read_bytes)

    @property
    def needed_bytes(self) -> int:
        """What a burst buffer must hold: output and input, wherever the input comes from."""
        return self.capacity_bytes or math.ceil(self.held_bytes) or 1

    def chosen(self) -> list[Storage]:
        """The storages to plan for."""
        names = self.storages or tuple(self.machine.storage)
        return [self.machine.choose(name) for name in names]


def plan(question: Question) -> Plan:
    """The plan of a job. Raises PlanError for what does not fit the machine."""
    known = _checked(question)
    storages = [_storage_plan(question, storage, known) for storage in question.chosen()]
    storages.sort(key=lambda one: one.recommended.io_s if one.recommended else math.inf)
    return Plan(
        forebay_plan=VERSION,
        machine=question.machine.name,
        script=question.script,
        profile=question.profile,
        nodes=question.nodes,
        ranks=question.ranks,
        patterns=[_described(pattern) for pattern in question.patterns],
        storages=storages,
        notes=[*question.notes, *_capacity_notes(question)],
    )


def _capacity_notes(question: Question) -> list[str]:
    held = question.held_bytes
    if not 0 < question.capacity_bytes < held:
        return []
    capacity = size_text(question.capacity_bytes)
    return [
        f"the capacity of {capacity} is less than the {size_text(held)} that the job reads and writes: "
        "it must remove files while it runs"
    ]


def sweep(question: Question) -> Sweep:
    """Times and efficiencies for each number of servers."""
    known = _checked(question)
    return Sweep(
        forebay_plan=VERSION,
        machine=question.machine.name,
        nodes=question.nodes,
        ranks=question.ranks,
        patterns=[_described(pattern) for pattern in question.patterns],
        curves=[_curve(question, storage, known) for storage in question.chosen()],
        notes=list(question.notes),
    )


def _checked(question: Question) -> Fitted:
    if not question.patterns:
        raise PlanError("there is no pattern to plan for", "describe one with --access and --size")
    for pattern in question.patterns:
        check_job(pattern, question.machine)
    if question.capacity_bytes:
        for storage in question.chosen():
            if storage.kind == "datawarp":
                check_capacity(storage, question.capacity_bytes)
    return fitted()


def _searcher(question: Question, storage: Storage, known: Fitted) -> Searcher:
    return Searcher(
        machine=question.machine,
        storage=storage,
        patterns=question.patterns,
        fixed=question.fixed,
        parameters=known.parameters,
        capacity_bytes=question.needed_bytes if storage.kind == "datawarp" else 0,
        compute_s=question.compute_s,
        script=question.script_settings,
    )


def unsuitable(question: Question, storage: Storage) -> str | None:
    """Why this storage cannot serve the job; None if it can."""
    found = [why_unsuitable(pattern, storage) for pattern in question.patterns]
    needed = question.needed_bytes if storage.kind in BURST_BUFFERS else question.written_bytes
    found.append(why_too_small(storage, needed, question.nodes))
    return next((why for why in found if why), None)


def _storage_plan(question: Question, storage: Storage, known: Fitted) -> StoragePlan:
    why = unsuitable(question, storage)
    if why:
        return StoragePlan(
            storage=storage.name, kind=storage.kind, unsuitable=why, default=None, given=None, script=None,
            recommended=None, faster=None, speed_up=None, band_factor=None, outside=[], allocation=None,
            staging=None, lines=[], changes=[], reasons=[],
        )  # fmt: skip
    searcher = _searcher(question, storage, known)
    script_trial, cannot = _script_trial(searcher)
    trials = _with_script(searcher, script_trial)
    best, default = searcher.recommend(trials), searcher.default()
    of_best = _band(question, storage, best, known)
    given = searcher.given() if question.fixed != Fixed() else None
    faster = searcher.faster(trials, best)
    granted = _granted(searcher, best.servers)

    def sized(trial: Trial) -> Sized:
        return _sized(searcher, trial, _band(question, storage, trial, known))

    capacity = granted.capacity_bytes if granted else None
    written = question.written_bytes
    return StoragePlan(
        storage=storage.name,
        kind=storage.kind,
        unsuitable=None,
        default=sized(default),
        given=sized(given) if given else None,
        script=sized(script_trial) if script_trial else None,
        recommended=sized(best),
        faster=sized(faster) if faster else None,
        speed_up=default.io_s / best.io_s,
        band_factor=of_best.factor,
        outside=of_best.notes,
        allocation=granted,
        staging=staging(
            question.machine, storage, best.servers, question.input_bytes, written, question.compute_s
        ),
        lines=lines(
            storage,
            question.patterns,
            best.settings,
            capacity,
            is_persistent=question.is_persistent,
            has_local=question.has_local,
            is_csh=question.script_settings is not None and question.script_settings.is_csh,
        ),
        changes=changes(question.script_settings, storage, question.patterns, best.settings, capacity)
        if script_trial and question.script_settings and best is not script_trial
        else [],
        reasons=[*cannot, *_smaller(question, granted), *reasons.of(searcher, trials, best, default)],
    )


def _smaller(question: Question, granted: Granted | None) -> list[str]:
    """Whether the plan asks for less than the script, which may know of more data."""
    asked = question.script_settings.capacity_bytes if question.script_settings else 0
    if granted is None or granted.capacity_bytes >= asked:
        return []
    return [
        f"The script asks for {size_text(asked)}, and the plan knows of {size_text(question.needed_bytes)}: "
        "keep the capacity if the job stores more; --capacity sets the least."
    ]


def _script_trial(searcher: Searcher) -> tuple[Trial | None, list[str]]:
    """What the script has, or why it cannot be predicted."""
    try:
        return searcher.script_trial(), []
    except PlanError as error:
        return None, [f"The settings of the script cannot be predicted here: {error}."]


def _with_script(searcher: Searcher, script_trial: Trial | None) -> list[Trial]:
    """What is tried: the script's own settings, if they cost no more than the best that the search knows."""
    trials = searcher.trials()
    if script_trial is None or searcher.fixed.servers is not None:
        return trials
    pool = searcher.pool()
    if pool and searcher.script and searcher.script.capacity_bytes < searcher.capacity_bytes:
        return trials
    cheaper = searcher.recommend(trials)
    return [script_trial, *trials] if _costs(searcher, script_trial) <= _costs(searcher, cheaper) else trials


def _costs(searcher: Searcher, trial: Trial) -> float:
    return searcher.price_of(trial).node_s


def _curve(question: Question, storage: Storage, known: Fitted) -> Curve:
    why = unsuitable(question, storage)
    if why:
        return Curve(
            storage=storage.name,
            kind=storage.kind,
            unsuitable=why,
            points=[],
            recommended_servers=None,
            outside=[],
        )
    searcher = _searcher(question, storage, known)
    trials = searcher.trials()
    points, bands = [], []
    for trial in trials:
        plain = searcher.default_on(trial.servers)
        granted = _granted(searcher, trial.servers)
        of_trial = _band(question, storage, trial, known)
        bands.append(of_trial)
        points.append(
            Point(
                servers=trial.servers,
                capacity_bytes=granted.capacity_bytes if granted else None,
                default=_sized(searcher, plain, _band(question, storage, plain, known)),
                best=_sized(searcher, trial, of_trial),
            )
        )
    return Curve(
        storage=storage.name,
        kind=storage.kind,
        unsuitable=None,
        points=points,
        recommended_servers=searcher.recommend(trials).servers,
        outside=notes_of(bands),
    )


def _band(question: Question, storage: Storage, trial: Trial, known: Fitted) -> Band:
    """The widest band of the patterns."""
    pairs = zip(question.patterns, trial.settings, strict=True)
    return widest(band(storage.kind, pattern, settings, known) for pattern, settings in pairs)


def _sized(searcher: Searcher, trial: Trial, of: Band) -> Sized:
    patterns, storage, price = searcher.patterns, searcher.storage, searcher.price_of(trial)
    total = sum(one.total_bytes for one in trial.predictions)
    peak_s = sum(
        pattern.total_bytes / (one.servers * storage.server_bytes_per_s(pattern.direction))
        for pattern, one in zip(patterns, trial.settings, strict=True)
    )
    longest = max(trial.predictions, key=lambda one: one.seconds)
    collective = [pattern.access == "collective" for pattern in patterns]
    return Sized(
        servers=trial.servers,
        stripe_counts=[one.stripe_count for one in trial.settings],
        aggregators=[
            one.aggregators if is_collective else None
            for one, is_collective in zip(trial.settings, collective, strict=True)
        ],
        stripe_bytes=[one.stripe_bytes for one in trial.settings],
        io_s=trial.io_s,
        low_s=max(trial.io_s / of.factor, min(peak_s / PEAK_EXCEEDED_MAX, trial.io_s)),
        high_s=trial.io_s * of.factor,
        bytes_per_s=total / trial.io_s,
        efficiency=peak_s / trial.io_s,
        open_s=sum(one.open_s for one in trial.predictions),
        synchronisation_s=sum(one.synchronisation_s for one in trial.predictions),
        exchange_s=sum(one.exchange_s for one in trial.predictions),
        storage_s=sum(one.storage_s for one in trial.predictions),
        bound_by=longest.bound_by,
        node_hours=price.compute_node_s / 3600,
        storage_node_hours=price.storage_node_s / 3600,
    )


def _granted(searcher: Searcher, servers: int) -> Granted | None:
    """The allocation for so many nodes, or a larger one that the data need."""
    got, pool = searcher.allocation(servers), searcher.pool()
    if got is None or pool is None:
        return None
    is_larger = got.requested_bytes > pool.capacity_for(servers)
    return Granted(
        capacity_bytes=got.requested_bytes if is_larger else got.granted_bytes,
        granted_bytes=got.granted_bytes,
        nodes=got.nodes,
        is_doubled=got.is_doubled,
        lost_bytes=got.granted_bytes - searcher.capacity_bytes,
    )


def _described(pattern: Pattern) -> Described:
    is_collective = pattern.access == "collective"
    return Described(
        name=pattern.name,
        direction=pattern.direction,
        access=pattern.access,
        ranks=pattern.ranks,
        nodes=pattern.nodes,
        total_bytes=pattern.total_bytes,
        transfer_bytes=pattern.transfer_bytes,
        calls=sum(one.count for one in pattern.collective_calls) if is_collective else None,
    )


def checkpoint_storages(machine: Machine) -> list[tuple[Storage, Storage | None]]:
    """(storage, where it is drained to) of each level that a checkpoint can go to."""
    permanent = permanent_storage(machine)
    return [
        (one, permanent if permanent and one.kind in BURST_BUFFERS else None)
        for one in machine.storage.values()
    ]
