"""Waiting for a condition that another process brings about."""

import subprocess
import time
from collections.abc import Callable

INTERVAL_S = 0.01


def wait_until(
    condition: Callable[[], object], seconds: float = 180, what: str = "", process: subprocess.Popen | None = None
) -> None:
    """Returns as soon as `condition()` is true; AssertionError, which names `what`, after so many seconds, or when the
    process that brings it about has ended."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what or 'the condition'}: not within {seconds:g} s"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(INTERVAL_S)
