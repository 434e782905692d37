"""Signals that wait until something is complete."""

from __future__ import annotations

import signal
from types import FrameType


class DeferredSignals:
    """Within it these signals are counted, and have no other effect. For the main thread."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self.numbers = numbers
        self.count = 0

    def _counted(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1

    def __enter__(self) -> DeferredSignals:
        self._before = {number: signal.signal(number, self._counted) for number in self.numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
