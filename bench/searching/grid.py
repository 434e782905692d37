"""A recorded grid (bench/grids/*.jsonl): the measured time of every configuration, to replay searches on."""

import dataclasses
import functools
import itertools
import pathlib
import statistics

import msgspec
from forebay.tune.model import Configuration, Guess, Machine, Parameter, key


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
    """`seconds`: the median of the repeats, None where it did not run well."""

    name: str
    parameters: tuple[Parameter, ...]
    guesses: tuple[Guess, ...]
    machine: Machine
    seconds: dict[tuple, float | None]

    @functools.cached_property
    def best_s(self) -> float:
        return min(value for value in self.seconds.values() if value is not None)

    @functools.cached_property
    def default_s(self) -> float:
        return self.seconds[()]

    def acting(self, configuration: Configuration) -> Configuration:
        """What is left of a configuration without the settings that cannot act: its largest part on the grid."""
        parts = _cached_parts(tuple(sorted(configuration)))
        for part in parts:
            one = {name: configuration[name] for name in part}
            if key(one) in self.seconds:
                return one
        return {}


@functools.lru_cache(maxsize=10000)
def _cached_parts(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [part for size in range(len(names), -1, -1) for part in itertools.combinations(names, size)]


def read(path: pathlib.Path) -> Grid:
    head, *lines = path.read_text().splitlines()
    about = msgspec.json.decode(head, type=Head)
    points = [msgspec.json.decode(line, type=Point) for line in lines if line]
    seconds = {key(p.configuration): statistics.median(p.seconds) if p.status == "ok" else None for p in points}
    return Grid(path.stem, about.parameters, about.guesses, about.machine, seconds)
