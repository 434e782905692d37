"""The program `forebay`, and its series of runs in one allocation (docs/explanation/tuner.md)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

import msgspec

from forebay.deferred_signals import DeferredSignals
from forebay.errors import ForebayError

#: So often it is looked whether a series has ended, and whether another signal came to be handed on.
WAIT_S = 0.2
#: So many lines of a series' standard error are in the message when it ends by itself.
LINES_SHOWN_MAX = 5
#: A killed tuner's series is waited for so long: it ends its job, and removes what it made.
ENDING_S_MAX = 60.0


class NativeError(ForebayError):
    """`forebay` is missing, refused, or ended unasked."""


class Ready(msgspec.Struct, kw_only=True):
    """The first line of a series: what it made."""

    burst_buffer: bool
    variables: dict[str, str] = {}
    root: str = ""
    store: dict | None = None
    stage_in: dict | None = None
    emulated: str | None = None


class Request(msgspec.Struct, kw_only=True):
    """One run: of `script`, or of `command`."""

    run: int
    script: str | None = None
    command: list[str] | None = None
    fresh: bool = True
    directory: str | None = None
    environment: dict[str, str] = {}
    record: str | None = None
    trace: bool = False
    output: str | None = None
    time_limit_s: float | None = None


class Answer(msgspec.Struct, kw_only=True):
    """How it ended. With `error` it was not begun."""

    run: int
    job_status: int | None = None
    job_s: float | None = None
    over_time_limit: bool = False
    ended_by_signal: int | None = None
    leftover_processes: int = 0
    unended_processes: list[int] = []
    error: str | None = None
    hint: str | None = None


class _Refusal(msgspec.Struct, kw_only=True):
    error: str
    hint: str | None = None


Line = TypeVar("Line", Ready, Answer)


def find_calling_forebay() -> Path:
    """The command `forebay`: the caller, else in this program's directory or in PATH; else NativeError."""
    named = os.environ.get("FOREBAY_PROGRAM")
    sibling = Path(sys.argv[0]).parent / "forebay"
    for candidate in (named, str(sibling) if sibling.is_file() else None, shutil.which("forebay")):
        if candidate:
            return Path(candidate)
    raise NativeError(
        "the command forebay is neither in the directory of forebay-py nor in PATH",
        "run make build, or make install",
    )


class Series:
    """Runs in one allocation, staged once. Use with `with`: at its end everything is removed.

    `options` are those of `forebay run`. `log` gets what the series says on standard error; without it that
    goes to ours.
    """

    def __init__(
        self, options: list[str], script: Path, *, log: Path | None, arguments: list[str] | None = None
    ) -> None:
        words = [str(find_calling_forebay()), "__series", *options, str(script)]
        self._words = words + (["--", *arguments] if arguments else [])
        self._log_path = log
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.ready: Ready

    def __enter__(self) -> Series:
        self._log = _lock_log(self._log_path) if self._log_path else None
        self._process = _start_process(self._words, self._log)
        try:
            self.ready = self._next_line(Ready)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the run in hand, if there is one, and waits until what was made is gone."""
        process = self._process
        assert process is not None and process.stdin is not None
        with DeferredSignals(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as deferred:
            with contextlib.suppress(BrokenPipeError):  # it ended first
                process.stdin.close()
            if error is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)  # it may not be reading yet, but staging in
            self._wait(process, deferred)
        if self._log:
            self._log.close()

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], deferred: DeferredSignals) -> None:
        """However long removing takes. A signal to us is handed on: the job's processes lose their grace."""
        handed_on = 0
        while process.poll() is None:
            try:
                process.wait(timeout=WAIT_S)
            except subprocess.TimeoutExpired:
                if deferred.count > handed_on:
                    handed_on = deferred.count
                    process.send_signal(signal.SIGTERM)
        if process.stdout:
            process.stdout.close()

    @property
    def process_id(self) -> int:
        """Of the series; what its jobs used of the processors is counted as its children's."""
        assert self._process is not None
        return self._process.pid

    def run(self, request: Request) -> Answer:
        """Does one run, to its end. NativeError if it could not be begun, or the series is gone."""
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._unexpected_end() from None
        answer = self._next_line(Answer)
        if answer.error:
            raise NativeError(answer.error, answer.hint)
        return answer

    def _next_line(self, form: type[Line]) -> Line:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._unexpected_end()
        try:
            if form is Ready and b'"error"' in line:
                refusal = msgspec.json.decode(line, type=_Refusal)
                raise NativeError(refusal.error, refusal.hint)
            return msgspec.json.decode(line, type=form)
        except msgspec.MsgspecError as error:
            shown = line[:200].decode(errors="replace").strip()
            raise NativeError(f"forebay answered what is not understood: {shown}") from error

    def _unexpected_end(self) -> NativeError:
        assert self._process is not None
        status = self._process.wait()
        said = self._last_lines()
        return NativeError(f"forebay ended unasked, with status {status}" + (f": {said}" if said else ""))

    def _last_lines(self) -> str:
        if self._log_path is None:
            return ""
        lines = self._log_path.read_text(errors="replace").splitlines()
        return " / ".join(line.strip() for line in lines[-LINES_SHOWN_MAX:])


def _lock_log(path: Path) -> IO[bytes]:
    """The log, once no earlier series writes it: one whose tuner was killed still removes what it made.

    It has the log open as long as it lives, and with that the lock. NativeError if it does not end.
    """
    file = path.open("ab")
    ends_s = time.monotonic() + ENDING_S_MAX
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError as error:
            if time.monotonic() > ends_s:
                file.close()
                message = f"{path}: the runs of a tuner that was killed have not ended"
                raise NativeError(
                    message, "`forebay status` names them, `forebay clean --kill` ends them"
                ) from error
            time.sleep(WAIT_S)
        except BaseException:
            file.close()
            raise


def _start_process(words: list[str], log: IO[bytes] | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    except OSError as error:
        raise NativeError(f"{words[0]}: {error.strerror}", "run make build, or make install") from error
