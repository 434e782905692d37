"""Cleans up behind a run that is killed.

A process of its own waits for the end of its standard input, which the run holds open. If the run ended
without the word `done`, the guard ends the processes of the run and removes its directory. SIGKILL gives the
run no time for that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from forebay.bench.run_directory import RunDirectory, purge
from forebay.bench.run_processes import RUN_VARIABLE, end_processes

_DONE = b"done\n"


class CleanupGuard:
    """Within it the guard of a run is alive. It cleans up unless the run sets `cleaned`."""

    def __init__(self, directory: RunDirectory) -> None:
        self.cleaned = False
        words = [sys.executable, "-m", "forebay.bench.guard", str(directory.path), directory.token]
        # Without the variable: a guard does not end itself.
        environment = {name: value for name, value in os.environ.items() if name != RUN_VARIABLE}
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, env=environment
        )

    def __enter__(self) -> CleanupGuard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        try:
            if self.cleaned:
                self.process.stdin.write(_DONE)
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # someone killed the guard; the run has cleaned up itself
        self.process.wait()


def main(path: Path, token: str) -> int:
    """Waits, and cleans up if that is needed. Returns the exit code."""
    # Who ends a whole group of processes means the run, which does its part first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read().endswith(_DONE):
        return 0
    end_processes(token)
    try:
        foreign = purge(path, token)
    except OSError as error:
        print(f"error: {path}: cannot be removed: {error}\nhint: rm -r {path}", file=sys.stderr)
        return 1
    for name in foreign:
        print(f"warning: {name} stays: the benchmark did not make it", file=sys.stderr)
    print(f"forebay: the benchmark in {path} was killed; its files are removed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
