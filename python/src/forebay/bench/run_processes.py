"""The processes of a run on this node, which a variable in their environment identifies."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

#: In the environment of everything that a run starts.
RUN_VARIABLE = "_FOREBAY_IO500_RUN"
#: Between SIGTERM and SIGKILL: a launcher then ends its ranks on all nodes.
GRACE_S = 10.0
_STEP_S = 0.05


def processes_of(token: str) -> Iterator[int]:
    """The numbers of the processes of the run with this token, but for this one."""
    wanted = f"{RUN_VARIABLE}={token}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        number = int(folder.name)
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if number != os.getpid() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield number


def end_processes(token: str) -> None:
    """Ends them all: with SIGTERM, and after GRACE_S with SIGKILL."""
    end = time.monotonic() + GRACE_S
    signalled: set[int] = set()
    while found := list(processes_of(token)):
        late = time.monotonic() > end
        for number in found:
            if late or number not in signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL if late else signal.SIGTERM)
        signalled.update(found)
        time.sleep(_STEP_S)
