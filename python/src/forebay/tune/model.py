"""What the tuner's rooms hand to each other: parameters, configurations, runs, steps, verdicts.

Times are in seconds, sizes in bytes. None means not known. All of it goes into the study file as it stands
here (docs/explanation/tuner.md).
"""

from __future__ import annotations

from typing import Literal

import msgspec


def described(configuration: Configuration) -> str:
    """The configuration on one line."""
    return ", ".join(f"{name}={value}" for name, value in sorted(configuration.items())) or "the default"


#: Where the job's files lie during a run.
Place = Literal["file-system", "burst-buffer"]
PLACES: tuple[Place, ...] = ("file-system", "burst-buffer")

#: Parameter name -> value. What is left out is as the job has it by itself; {} is the default.
Configuration = dict[str, str]


def key(configuration: Configuration) -> tuple[tuple[str, str], ...]:
    """The same for two configurations that set the same."""
    return tuple(sorted(configuration.items()))


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may be set, for the files of one pattern or for the whole job."""

    name: str  # PATTERN:SETTING, or SETTING alone for the whole job
    setting: str  # which file of tune/settings it comes from: cb_nodes, striping ...
    pattern: str | None  # as in MPICH_MPIIO_HINTS; None: the whole job
    values: tuple[str, ...]  # without the default; if `ordered`, ascending, and neighbours behave alike
    ordered: bool
    default: str | None  # what the default run had in force, if known, for the reader
    reason: str  # why it may matter here, with the counter it rests on
    source: str  # who says so


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, or one that a user would expect, that is not tried, and why."""

    setting: str
    pattern: str | None
    reason: str


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that the rules would choose, the surest first."""

    configuration: Configuration
    reason: str


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules of interaction need to know."""

    ranks: int
    nodes: int
    mpi: str | None = None  # what the MPI calls itself
    lustre_driver: bool = False  # ROMIO drives the files as Lustre's: cb_buffer_size is the stripe size
    stripe_targets: int | None = None  # where striping can be set: how many there are
    #: Below the job's directory, relative to it: they are there when it begins, and it makes files in them.
    output_directories: tuple[str, ...] = ()


Phase = Literal["default", "probe", "guess", "search", "anchor", "repeat", "final"]
#: ok: counts. failed: crashed, was ended at its limit, or its output is wrong; never chosen. ineffective: the
#: counters show that no setting did anything. contaminated: something else disturbed it; to be repeated.
Status = Literal["ok", "failed", "ineffective", "contaminated"]


class Run(msgspec.Struct, kw_only=True):
    """One run of the job, or of its recorded I/O."""

    number: int  # in the study, from 1
    place: Place
    phase: Phase
    configuration: Configuration
    status: Status
    seconds: float | None = None  # what is compared: see Study.objective; None if it failed
    reason: str | None = None  # of a status other than ok; what the user should know
    replay: bool = False  # the recorded I/O was issued, not the job run
    job_s: float | None = None  # run time of the script, or of the replay
    io_s: float | None = None  # of the slowest rank in I/O calls
    without_effect: list[str] = []  # parameters whose value the counters do not show
    checked: str | None = None  # how its output was found right: "the same bytes" ...
    foreign_cpu: float | None = None  # share of the processors that others used meanwhile
    started_unix_s: float | None = None
    record: str | None = None  # directory of its record, relative to the study's
    spent_s: float | None = None  # that the study's tuners had run for at its end


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What to run next."""

    configuration: Configuration
    phase: Phase
    reason: str  # for the progress line
    replay: bool = False  # issue the recorded I/O instead of running the job


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """Default against tuned, run alternately. Ratios are default / tuned: above 1 the tuned one is faster."""

    pairs: int
    ratio: float  # the middle of the interval
    low: float  # the interval, at `confidence`
    high: float
    confidence: float
    default_s: float  # medians of the paired runs
    tuned_s: float

    @property
    def interval(self) -> str | None:
        """Its ends as text; None for one pair, which says nothing of how much others would differ."""
        return f"{self.low:.2f} to {self.high:.2f}" if self.pairs > 1 else None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How a search ended in one place."""

    recommended: Configuration  # {}: keep the default
    reason: str
    pairing: Pairing | None = None  # None: it did not come to a final round
    is_cut_short: bool = False  # the budget ended the search or its final round: more runs may change it


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a search. The next step follows from it and the runs so far, and nothing else."""

    parameters: tuple[Parameter, ...]
    refusals: tuple[Refusal, ...]
    guesses: tuple[Guess, ...]
    machine: Machine
    strategy: str  # a file of tune/strategies
    seed: int
    runs_max: int  # of all phases, failed ones included
    confidence: float = 0.95
    confirm_pairs: int | None = (
        None  # search on the recorded I/O, then so many pairs of the real job; None: no replay
    )
