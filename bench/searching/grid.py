"""A recorded grid (bench/grids/*.jsonl): the measured time of every configuration, to replay searches on."""

import dataclasses
import functools
import itertools
import math
import pathlib
import tempfile

import msgspec
from forebay.profiles.sources import open_path
from forebay.tune import space
from forebay.tune.model import Configuration, Guess, Machine, Parameter, key
from forebay.tune.job_script import script


class Head(msgspec.Struct, kw_only=True):
    """The first line of a grid."""

    grid: int
    kernel: str
    model: str
    ranks: int
    machine: Machine
    parameters: tuple[Parameter, ...]
    guesses: tuple[Guess, ...] = ()


class Point(msgspec.Struct, kw_only=True):
    """One configuration; `seconds` of each repeat, none if it did not run well."""

    configuration: Configuration
    seconds: list[float]
    status: str = "ok"


@dataclasses.dataclass(frozen=True)
class Grid:
    """`seconds`: the fastest of the repeats, for other work only adds; None where it did not run well."""

    name: str
    parameters: tuple[Parameter, ...]
    guesses: tuple[Guess, ...]
    machine: Machine
    seconds: dict[tuple, float | None]
    _acting: dict[tuple, tuple] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def best_s(self) -> float:
        return min(value for value in self.seconds.values() if value is not None)

    @functools.cached_property
    def default_s(self) -> float:
        return self.seconds[()]

    def acting(self, configuration: Configuration) -> Configuration:
        """What is left of a configuration without the settings that cannot act: its largest part on the grid."""
        wanted = key(configuration)
        if wanted not in self._acting:
            parts = (part for size in range(len(wanted), -1, -1) for part in itertools.combinations(wanted, size))
            self._acting[wanted] = next(part for part in parts if part in self.seconds)
        return dict(self._acting[wanted])


def read(path: pathlib.Path) -> Grid:
    """The grid, with the guesses of today's rules from the record of its default run beside it."""
    head, *lines = path.read_text().splitlines()
    about = msgspec.json.decode(head, type=Head)
    points = [msgspec.json.decode(line, type=Point) for line in lines if line]
    seconds = {key(p.configuration): min(p.seconds) if p.status == "ok" else None for p in points}
    parameters, guesses = about.parameters, about.guesses
    if not guesses:
        found = _space(path.with_suffix(".record"), about)
        known = {parameter.name: parameter.default for parameter in found.parameters}
        parameters = tuple(msgspec.structs.replace(p, default=known.get(p.name)) for p in parameters)
        guesses = tuple(
            msgspec.structs.replace(g, configuration=_near(g.configuration, parameters)) for g in found.guesses
        )
    return Grid(path.stem, parameters, guesses, about.machine, seconds)


def _space(record: pathlib.Path, about: Head) -> space.Space:
    with tempfile.TemporaryDirectory() as directory:
        job = pathlib.Path(directory) / "job.sh"
        job.write_text(f"#!/bin/bash\n#SBATCH -N 1 -n {about.ranks}\nsrun program\n")
        return space.build(
            open_path(record),
            script.read(job),
            "file-system",
            layout_may_change=False,
            stripe_targets=about.machine.stripe_targets,
        )


def _near(configuration: Configuration, parameters: tuple[Parameter, ...]) -> Configuration:
    """With the grid's nearest values; what the grid does not have is left out."""
    axes = {parameter.name: parameter for parameter in parameters}
    return {name: _nearest(value, axes[name]) for name, value in configuration.items() if name in axes}


def _nearest(value: str, parameter: Parameter) -> str:
    if value in parameter.values or not parameter.ordered:
        return value
    return min(parameter.values, key=lambda other: abs(math.log(float(other) / float(value))))
