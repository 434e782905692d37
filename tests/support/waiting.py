"""Waiting for a condition that another process brings about."""

import subprocess
import time
from collections.abc import Callable

#: Between two looks: a twentieth of the time until now, within these limits. Many conditions start a program.
INTERVAL_S = (0.01, 0.25)


def wait_until(
    condition: Callable[[], object], seconds: float = 180, what: str = "", process: subprocess.Popen | None = None
) -> None:
    """Returns as soon as `condition()` is true; AssertionError, which names `what`, after so many seconds, or when the
    process that brings it about has ended."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, f"{what or 'the condition'}: not within {seconds:g} s"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(min(max((time.monotonic() - began) / 20, INTERVAL_S[0]), INTERVAL_S[1]))
