"""Python functions on close: one is called for each version of a matching file (docs/how-to/drain.md).

It is called as soon as the last writer has closed the file.

    watch = Watch("out", at_most=2, retries=3, log="plots.log")

    @watch.on_close("step-*.nc")
    def plot(closed):
        ...  # closed.path, closed.version

    with watch:
        subprocess.run(["./simulation"], check=True)

At the end of `with` everything that was closed until then has been handled. What is closed, `forebay watch`
sees, which is started as a child; it also counts, repeats, and keeps the log.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import traceback
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeVar

import msgspec

from forebay.errors import ForebayError
from forebay.series_client import find_calling_forebay

Name = str | os.PathLike


class Closed(NamedTuple):
    """One version of a file. Versions count from 1, for as long as it is watched."""

    path: Path
    version: int


Function = TypeVar("Function", bound=Callable[[Closed], object])


class Failure(msgspec.Struct, array_like=True):
    """A version whose function raised an exception, each time; or was not called any more."""

    path: str
    version: int
    reason: str


class Account(msgspec.Struct, kw_only=True):
    """What became of the versions. Each that was `closed` is in one of the counts behind that."""

    closed: int
    done: int
    failed: int
    superseded: int
    not_run: int
    failures: list[Failure]


#: Each `forebay watch` that was started here.
_started: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def _detach_child() -> None:
    """A child that was forked, such as a worker of a pool, holds no pipe of `forebay watch`.

    That ends when its program ends, which it knows by the end of its standard input.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for pipe in [pipe for one in _started for pipe in (one.stdin, one.stdout)]:
        if pipe is not None and not pipe.closed:
            # Not closed: its number might become another file's, into which it would write.
            os.dup2(nothing, pipe.fileno(), inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_detach_child)


class Watch:
    """Directories with all below them, and the functions for what is closed there.

    A function that raised an exception is called up to `retries` times again. Functions are called in
    `at_most` threads, or by `executor`, which is not shut down. In processes of their own functions run by
    `ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))`; one that forks would do so in
    a program with threads.
    `log` is the file for what was called, and for tracebacks; these go to standard error without it.
    """

    def __init__(
        self,
        *directories: Name,
        at_most: int = 1,
        retries: int = 0,
        log: Name | None = None,
        executor: Executor | None = None,
    ) -> None:
        if not directories:
            raise ForebayError("there is no directory to watch", "give at least one: Watch('out')")
        options = ["--jobs", str(at_most), "--retries", str(retries)]
        self._words = options + (["--log", os.fspath(log)] if log is not None else [])
        self._directories = [os.fspath(directory) for directory in directories]
        self._at_most = at_most
        self._executor = executor
        self._rules: list[tuple[str, Callable[[Closed], object]]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._sending = threading.Lock()
        #: None until the end of the watch.
        self.account: Account | None = None

    def on_close(self, *patterns: str) -> Callable[[Function], Function]:
        """Registers the function below for files that match one of the patterns, before the watch begins.

        They are those of `forebay watch --on-close`.
        """
        if self._process:
            raise ForebayError("the watch has begun", "register all functions before")
        for pattern in patterns:
            if "=" in pattern or "," in pattern:
                raise ForebayError(f"the pattern {pattern} has a comma or =", "write ? in its place")

        def register(function: Function) -> Function:
            self._rules.append((",".join(patterns), function))
            return function

        return register

    def __enter__(self) -> Watch:
        """Begins to watch; ForebayError if that cannot be."""
        words = [str(find_calling_forebay()), "watch", "--calls", *self._words]
        for patterns, function in self._rules:
            words += ["--on-close", f"{patterns}={getattr(function, '__qualname__', repr(function))}"]
        pipe = subprocess.PIPE
        # Of a group of its own: Ctrl-C in a terminal is ours to answer, and lets come to their end what runs.
        started = subprocess.Popen(
            [*words, "--", *self._directories], stdin=pipe, stdout=pipe, process_group=0
        )
        _started.add(started)
        assert started.stdout is not None
        if started.stdout.readline() != b"ready\n":
            status = self._close(started)
            raise ForebayError(f"nothing can be watched: forebay watch ended with status {status}", None)
        self._process, self.account = started, None
        self._own = None if self._executor else ThreadPoolExecutor(self._at_most)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits until everything that was closed has been handled; after an exception, for what runs only."""
        self._send(b"stop\n" if kind else b"finish\n")
        try:
            self._listener.join()
        except BaseException:
            self._send(b"stop\n")
            self._listener.join()
            raise
        finally:
            status = self._close(self._process)
            if self._own:
                self._own.shutdown(wait=False)
        if self.account is None and kind is None:
            raise ForebayError(
                f"forebay watch was lost, with status {status}", "see what it said on standard error"
            )

    def wait(self) -> None:
        """Returns when the directories have been removed, or an account has come otherwise."""
        self._listener.join()

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> int:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended first
            process.stdin.close()
        status = process.wait()
        process.stdout.close()
        return status

    def _send(self, line: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        # It may have ended, and then it needs no message; its account has the result.
        with self._sending, contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        executor = self._executor or self._own
        for line in self._process.stdout:
            said = msgspec.json.decode(line)
            if "call" not in said:
                self.account = msgspec.convert(said, Account)
                return
            closed = Closed(Path(os.fsdecode(bytes(said["path"]))), said["version"])
            try:
                future = executor.submit(self._rules[said["rule"]][1], closed)
            except RuntimeError as error:  # it is broken, or was shut down
                future = Future()
                future.set_exception(error)
            future.add_done_callback(partial(self._answer, said["call"]))

    def _answer(self, call: int, future: Future) -> None:
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        reason, trace = (None, None) if error is None else _describe_error(error)
        answer = {"call": call, "error": reason, "traceback": trace}
        self._send(msgspec.json.encode(answer) + b"\n")


def _describe_error(error: BaseException) -> tuple[str, str]:
    """An exception and its traceback, in UTF-8: names of files in them need not be."""
    try:
        reason = "".join(traceback.format_exception_only(error)).strip()
        trace = "".join(traceback.format_exception(error)).rstrip()
    except Exception as second:  # whatever the function raised, `forebay watch` waits for an answer
        reason = f"{type(error).__qualname__}, which cannot be shown: {type(second).__qualname__}"
        trace = reason
    return _utf_8(reason), _utf_8(trace)


def _utf_8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
