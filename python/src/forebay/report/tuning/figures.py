"""What a study comes to in numbers: each place's default and tuned runs, what the study cost and gains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, takewhile
from pathlib import Path
from statistics import median

from forebay.tune.decide.job_time_gain import job_pairing
from forebay.tune.decide.search import ratios
from forebay.tune.model import PLACES, Configuration, Pairing, Parameter, Place, Plan, Run, Verdict, key
from forebay.tune.study import Study

DEFAULT: Configuration = {}


@dataclass(frozen=True)
class Sample:
    """Runs of the real job with one configuration that count."""

    configuration: Configuration
    runs: Sequence[Run]

    @property
    def job_s(self) -> list[float]:
        """Run times of the job."""
        return _known(run.job_s for run in self.runs)

    @property
    def io_s(self) -> list[float]:
        """Times of the slowest rank in I/O calls."""
        return _known(run.io_s for run in self.runs)


def middle(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _last_round(runs: Sequence[Run]) -> list[Run]:
    """The last runs in turn that are of a final round; an extended study may have gone on without another."""
    back = dropwhile(lambda run: run.phase != "final", reversed(runs))
    return list(takewhile(lambda run: run.phase == "final", back))[::-1]


@dataclass(frozen=True)
class PlaceFigures:
    """The runs of one place, in order, and how its search ended, if it has."""

    place: Place
    runs: Sequence[Run]
    plan: Plan | None
    verdict: Verdict | None

    @cached_property
    def ratios(self) -> list[float | None]:
        """Time of each run over the default's at that time; None if it has none."""
        return list(ratios(self.runs))

    @property
    def recommended(self) -> Configuration:
        """What the verdict chose; {} before there is one."""
        return self.verdict.recommended if self.verdict else DEFAULT

    @cached_property
    def best(self) -> Configuration | None:
        """What was recommended, else the quickest of those furthest in the final round, else of all."""
        if self.recommended:
            return self.recommended
        if paired := self._paired():
            return paired
        final = self._tried(final=True)
        furthest = max((len(ratios) for _, ratios in final), default=0)
        found = [one for one in final if len(one[1]) == furthest] or self._tried(final=False)
        return min(found, key=lambda one: median(one[1]))[0] if found else None

    def _paired(self) -> Configuration | None:
        """What a verdict that keeps the default was about: its median in the final round is the pairing's."""
        if not (self.verdict and self.verdict.pairing):
            return None
        found: dict[object, tuple[Configuration, list[float]]] = {}
        for run in _last_round(self.runs):
            if run.status == "ok" and run.configuration and run.seconds:
                found.setdefault(key(run.configuration), (run.configuration, []))[1].append(run.seconds)
        tuned_s = self.verdict.pairing.tuned_s
        near = sorted(found.values(), key=lambda one: abs(median(one[1]) - tuned_s))
        return near[0][0] if near else None

    def _tried(self, final: bool) -> list[tuple[Configuration, list[float]]]:
        """Each configuration but the default with the ratios of its runs that count."""
        found: dict[object, tuple[Configuration, list[float]]] = {}
        for run, ratio in zip(self.runs, self.ratios, strict=True):
            counts = ratio is not None and run.status == "ok" and run.configuration
            if counts and (run.phase == "final" or not final):
                found.setdefault(key(run.configuration), (run.configuration, []))[1].append(ratio)
        return list(found.values())

    def sample(self, configuration: Configuration) -> Sample:
        """Its runs of the last final round, made in turn with the other's; without one all that count."""
        wanted = key(configuration)
        last = [run for run in self._last_final() if key(run.configuration) == wanted and run.status == "ok"]
        real = [run for run in self._real if key(run.configuration) == wanted and run.status == "ok"]
        return Sample(configuration, last or real)

    def ratio(self, sample: Sample) -> float | None:
        """Of the pairs that decided, where there are any; else the median of its runs' ratios."""
        if sample.runs and self.is_paired and sample.configuration == self.best:
            return 1 / self.verdict.pairing.ratio
        numbers = {run.number for run in sample.runs}
        pairs = zip(self.runs, self.ratios, strict=True)
        return middle([ratio for run, ratio in pairs if ratio is not None and run.number in numbers])

    @property
    def is_paired(self) -> bool:
        """Did it come to pairs of runs, made in turn?"""
        return self.verdict is not None and self.verdict.pairing is not None

    @property
    def _real(self) -> list[Run]:
        return [run for run in self.runs if not run.replay]

    def _last_final(self) -> list[Run]:
        """An extended study has more than one final round: the last one was judged."""
        return _last_round(self._real)

    @cached_property
    def job_proof(self) -> Pairing | None:
        """The job's run time, default against what is recommended, in the pairs of the final round."""
        if not (self.recommended and self.verdict and self.verdict.pairing):
            return None
        return job_pairing(self.runs, self.recommended, self.verdict.pairing.confidence)

    @cached_property
    def drawn_ratios(self) -> list[float | None]:
        """`ratios`, with those of disturbed runs as well, against the default's time at the next run."""
        found = list(self.ratios)
        for at, run in enumerate(self.runs):
            if found[at] is None and run.status == "contaminated" and run.seconds:
                level_s = self._default_s(at, run.replay)
                found[at] = run.seconds / level_s if level_s else None
        return found

    def _default_s(self, at: int, replay: bool) -> float | None:
        """What the default took around run `at`, from the nearest run that was compared with it."""
        known = [
            (abs(other - at), run.seconds / ratio)
            for other, (run, ratio) in enumerate(zip(self.runs, self.ratios, strict=True))
            if ratio and run.seconds and run.replay == replay
        ]
        return min(known)[1] if known else None

    def best_values(self) -> list[float | None]:
        """After each run: the least median ratio of a configuration so far; 1 is the default."""
        so_far: dict[object, list[float]] = {}
        found: list[float | None] = []
        for run, ratio in zip(self.runs, self.ratios, strict=True):
            if ratio is not None and run.status == "ok" and run.configuration:
                so_far.setdefault(key(run.configuration), []).append(ratio)
            least = min((median(known) for known in so_far.values()), default=1.0)
            found.append(min(1.0, least) if any(one.status == "ok" for one in self.runs) else None)
        return found

    def by_value(self, parameter: Parameter) -> list[tuple[str | None, list[float]]]:
        """Ratios of the runs that count, by the parameter's value; None: not set. Only what was run."""
        found: dict[str | None, list[float]] = {}
        for run, ratio in zip(self.runs, self.ratios, strict=True):
            if ratio is not None and run.status == "ok":
                found.setdefault(run.configuration.get(parameter.name), []).append(ratio)
        return [(value, found[value]) for value in (None, *parameter.values) if value in found]

    @property
    def idle_parameters(self) -> list[tuple[str, int, int]]:
        """Parameters that some run found without effect: name, how many such runs, how many set it."""
        names = dict.fromkeys(name for run in self.runs for name in run.without_effect)
        return [
            (
                name,
                sum(name in run.without_effect for run in self.runs),
                sum(name in run.configuration for run in self.runs),
            )
            for name in names
        ]

    @property
    def gain_s(self) -> float | None:
        """Run time that the recommended lines save in each run of the job; None if nothing is recommended."""
        if not self.recommended:
            return None
        default_s, tuned_s = (middle(self.sample(one).job_s) for one in (DEFAULT, self.recommended))
        return None if default_s is None or tuned_s is None else default_s - tuned_s


@dataclass(frozen=True)
class StudyFigures:
    """A whole study."""

    study: Study
    places: Sequence[PlaceFigures]

    @property
    def name(self) -> str:
        """The script's name."""
        return Path(self.study.head.script).name

    @property
    def compared(self) -> str:
        """What the times are that a search compares."""
        return "I/O time" if self.study.head.objective == "io" else "run time"

    @property
    def label(self) -> str:
        """What stands in every caption: where the files were."""
        model = self.study.head.emulated
        return f"emulated file system: {model}" if model else "real file system"

    @property
    def nodes(self) -> int:
        """Nodes of the job; 1 before there is a plan."""
        return max((place.plan.machine.nodes for place in self.places if place.plan), default=1)

    def node_hours(self, runs: Sequence[Run]) -> float:
        """What runs cost: run time times nodes. A run whose time is not known adds nothing."""
        return sum(_known(run.job_s for run in runs)) * self.nodes / 3600

    @property
    def cost_node_hours(self) -> float:
        """All runs of the study."""
        return self.node_hours(self.study.runs)

    def gain_node_hours(self, place: PlaceFigures) -> float | None:
        """What one run of the job saves in this place."""
        return None if place.gain_s is None else place.gain_s * self.nodes / 3600

    def is_within_noise(self, place: PlaceFigures) -> bool:
        """Whether the gain of the whole job is within the noise of its run times."""
        proof = place.job_proof
        return proof is not None and proof.low <= 1 <= proof.high

    def paid_after_runs(self, place: PlaceFigures) -> int | None:
        """Runs of the job after which the whole study has paid for itself; None: never, or unknown."""
        if place.job_proof is None or self.is_within_noise(place):
            return None
        gain = self.gain_node_hours(place)
        return math.ceil(self.cost_node_hours / gain) if gain and gain > 0 else None


def figures(study: Study) -> StudyFigures:
    """The figures of a study. A place appears with its first run. The verdict of a study that was
    extended later is left out: newer runs may contradict it."""
    places = [
        PlaceFigures(
            place,
            study.runs_in(place),
            study.plans.get(place),
            study.verdicts.get(place) if study.settled(place) else None,
        )
        for place in PLACES
        if study.runs_in(place)
    ]
    return StudyFigures(study, places)
