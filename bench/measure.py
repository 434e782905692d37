"""Alternating pairs, with an A/A pair beside each: what two ways of doing the same differ by, and what nothing differs by."""

import dataclasses
import statistics
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Compared:
    """One line: figures of A, of B, and of A once more, taken in turn."""

    what: str
    a_is: str
    b_is: str
    unit: str
    a: list[float]
    b: list[float]
    again: list[float]
    more_is_better: bool = False
    promise: str | None = None
    kept: bool | None = None

    def ratios(self) -> list[float]:
        return sorted(b / a for a, b in zip(self.a, self.b))

    def noise(self) -> list[float]:
        return sorted(again / a for a, again in zip(self.a, self.again))

    def verdict(self) -> str:
        ratios, noise = self.ratios(), self.noise()
        if ratios[0] <= noise[-1] and noise[0] <= ratios[-1]:
            return "no clear difference"
        ratio = statistics.median(ratios)
        faster = ratio if self.more_is_better else 1 / ratio
        return f"B is {faster:.2f} times as fast" if faster > 1 else f"B LOSES: it takes {1 / faster:.2f} times as long"

    def cells(self) -> list[str]:
        a, b = statistics.median(self.a), statistics.median(self.b)
        return [
            self.what,
            f"{self.a_is}: {figure(a)}",
            f"{self.b_is}: {figure(b)}",
            self.unit,
            spread(self.ratios()),
            spread(self.noise()),
            self.verdict(),
            promised(self),
        ]

    def record(self) -> dict:
        return dataclasses.asdict(self) | {"ratios": self.ratios(), "noise": self.noise(), "verdict": self.verdict()}


@dataclasses.dataclass(frozen=True)
class Counted:
    """One line that is no matter of time: counted, so nothing varies."""

    what: str
    a_is: str
    b_is: str
    unit: str
    a: float
    b: float
    verdict: str
    promise: str | None = None
    kept: bool | None = None

    def cells(self) -> list[str]:
        return [
            self.what,
            f"{self.a_is}: {figure(self.a)}",
            f"{self.b_is}: {figure(self.b)}",
            self.unit,
            f"{self.b / self.a:.2f}",
            "-",
            self.verdict,
            promised(self),
        ]

    def record(self) -> dict:
        return dataclasses.asdict(self)


Line = Compared | Counted


def in_turn(rounds: int, a: Callable[[], object], *others: Callable[[], object]) -> list[list]:
    """Results of A, of each other and of A once more, round by round, each round in another order."""
    ways = [a, *others, a]
    results = [[] for _ in ways]
    for number in range(rounds):
        order = [(number + step) % len(ways) for step in range(len(ways))]
        for way in order if number % 2 == 0 else reversed(order):
            results[way].append(ways[way]())
    return results


def promised(line: Line) -> str:
    if line.promise is None:
        return ""
    return f"{line.promise}: {'kept' if line.kept else 'NOT kept'}"


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
