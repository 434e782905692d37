"""A file system whose bandwidth all transfers share: max-min fairness under a limit of each."""

from __future__ import annotations

from collections.abc import Callable

import simpy

#: A transfer with fewer bytes left is complete: rounding of rates times seconds leaves less than that.
_REST_BYTES = 1e-3


class _Transfer:
    __slots__ = ("done", "left_bytes", "limit_bytes_per_s", "rate_bytes_per_s")

    def __init__(self, left_bytes: float, limit_bytes_per_s: float, done: Callable[[], None]) -> None:
        self.left_bytes, self.limit_bytes_per_s, self.done = left_bytes, limit_bytes_per_s, done
        self.rate_bytes_per_s = 0.0


class SharedBandwidth:
    """Transfers take turns in arbitrarily small pieces, so all go on at once (processor sharing)."""

    def __init__(self, environment: simpy.Environment, bytes_per_s: float) -> None:
        self.environment, self.bytes_per_s = environment, bytes_per_s
        self._transfers: list[_Transfer] = []  # by their limits, lowest first
        self._since_s = 0.0
        self._plan = 0  # number of the current plan: alarms of older ones do nothing

    def start(self, size_bytes: float, limit_bytes_per_s: float, done: Callable[[], None]) -> None:
        """Begins a transfer; calls `done` when it is complete."""
        self._advance()
        added = _Transfer(size_bytes, limit_bytes_per_s, done)
        at = len(self._transfers)
        while at > 0 and self._transfers[at - 1].limit_bytes_per_s > limit_bytes_per_s:
            at -= 1
        self._transfers.insert(at, added)
        self._share()

    def _advance(self) -> None:
        passed_s = self.environment.now - self._since_s
        self._since_s = self.environment.now
        if passed_s > 0:
            for one in self._transfers:
                one.left_bytes -= one.rate_bytes_per_s * passed_s

    def _share(self) -> None:
        """Gives each its limit or an equal part of what those with lower limits leave, and sets the alarm."""
        self._plan += 1
        left, count = self.bytes_per_s, len(self._transfers)
        next_s = None
        for one in self._transfers:
            rate = min(one.limit_bytes_per_s, left / count)
            left -= rate
            count -= 1
            one.rate_bytes_per_s = rate
            wait_s = one.left_bytes / rate if one.left_bytes > 0 else 0.0
            if next_s is None or wait_s < next_s:
                next_s = wait_s
        if next_s is not None:
            alarm = self.environment.timeout(next_s, self._plan)
            assert alarm.callbacks is not None
            alarm.callbacks.append(self._completed)

    def _completed(self, alarm: simpy.Event) -> None:
        if alarm.value != self._plan:
            return
        self._advance()
        # What would end within the resolution of the clock ends now: the alarm after it would not advance.
        step_s = 1e-12 * max(1.0, self.environment.now)
        ended = [
            one
            for one in self._transfers
            if one.left_bytes <= max(_REST_BYTES, one.rate_bytes_per_s * step_s)
        ]
        self._transfers = [one for one in self._transfers if one not in ended] if ended else self._transfers
        self._share()
        for one in ended:
            one.done()
