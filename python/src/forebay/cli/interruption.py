"""Signals that end a command after it has cleaned up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

IMPORT_RETRY_S = 0.01


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Each is an exception, so that what is under way is ended and put away.

    A module that is being imported is completed before. Compiled ones, such as numpy.random's, can lose the
    exception, and others cannot be imported again after it.
    """

    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            came.append(number)
        if _imports(frame):
            signal.setitimer(signal.ITIMER_REAL, IMPORT_RETRY_S)
        elif came:
            raise Interrupted(came[0])

    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    caught = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in [*caught, signal.SIGALRM]}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _imports(frame: FrameType | None) -> bool:
    """Whether an import statement is being executed."""

    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
