"""Waiting for a condition that another process brings about."""

import time
from collections.abc import Callable

INTERVAL_S = 0.01


def wait_until(condition: Callable[[], object], seconds: float = 30, what: str = "") -> None:
    """Returns as soon as `condition()` is true; AssertionError, which names `what`, after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what or 'the condition'}: not within {seconds:g} s"
        time.sleep(INTERVAL_S)
