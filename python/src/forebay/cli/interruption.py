"""Signals that end a command after it has cleaned up."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Each is an exception, so that what is under way is ended and put away.

    Code below may lose an exception. What is given raises it again, if a signal has come.
    Imports come before: one that an exception ends half way cannot be made again.
    """

    came: list[int] = []

    def check() -> None:
        if came:
            raise Interrupted(came[0])

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise Interrupted(number)

    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    caught = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in caught}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
