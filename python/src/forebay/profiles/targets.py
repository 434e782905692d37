"""What was moved to and from each storage target, as far as files are on few of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from forebay.profiles import metrics
from forebay.profiles.model import Direction, Program
from forebay.profiles.time_parts import DIRECTIONS


@dataclass
class TargetUse:
    """Files of one storage target, and their seconds in one direction."""

    bytes: int = 0
    seconds: float = 0.0
    files: int = 0
    slowest_s: float = 0.0

    def add(self, moved: int, spent_s: float) -> None:
        """Adds a file. One on several targets counts whole for each."""
        self.bytes += moved
        self.seconds += spent_s
        self.files += 1
        self.slowest_s = max(self.slowest_s, spent_s)

    @property
    def s_per_byte(self) -> float:
        """Seconds for each byte."""
        return self.seconds / self.bytes

    @property
    def mean_s(self) -> float:
        """Seconds for each file."""
        return self.seconds / self.files


def main_direction(program: Program) -> Direction:
    """The direction that took most time: reads and writes do not compare."""
    tops = [top[1] for file in program.files if (top := metrics.top_layer(file))]
    seconds = {
        direction: sum(getattr(layer, direction).seconds or 0.0 for layer in tops) for direction in DIRECTIONS
    }
    return max(DIRECTIONS, key=lambda direction: seconds[direction])


def by_target(program: Program, direction: Direction, least_bytes: int = 1) -> dict[int, TargetUse]:
    """By number of the target. Files that are on more than half of all targets tell nothing of one."""
    known = {target for file in program.files for target in file.targets}
    found: dict[int, TargetUse] = defaultdict(TargetUse)
    for file in program.files:
        top = metrics.top_layer(file)
        if top is None or not file.targets or 2 * len(set(file.targets)) > len(known):
            continue
        moved = getattr(top[1], direction).bytes or 0
        spent_s = metrics.slowest_direction_s(file, top[0], direction)
        if moved < least_bytes or not spent_s:
            continue
        for target in set(file.targets):
            found[target].add(moved, spent_s)
    return dict(found)
