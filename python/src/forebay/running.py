"""`forebay.run`: runs a job script. Needs the standard library only."""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Self

from forebay.errors import ForebayError
from forebay.program import find_forebay
from forebay.results import Result

if TYPE_CHECKING:
    import subprocess

Word = str | int | float | os.PathLike[str]
#: Options that `run` itself gives, or that change what the program prints.
_NOT_OFFERED = {"json", "help", "dry_run"}
#: In the help, after an option with a value, and after a flag that is also a setting.
_VALUE, _SETTING = " <", "[=<BOOL>]"


class JobError(ForebayError, RuntimeError):
    """The job failed, did not start, or not all of its results were staged out. `result` says which."""

    def __init__(self, result: Result) -> None:
        about = result.script or "the job"
        message = result.error or f"{about}: exit code {result.exit_code}"
        if result.undelivered:
            message += f"; not all results were staged out: the data are in {result.kept}"
        super().__init__(message, result.hint)
        self.result = result

    def __reduce__(self) -> tuple[type[Self], tuple[Result]]:
        return type(self), (self.result,)


@cache
def _options(path: str) -> dict[str, str]:
    """The options of `forebay run`, as keywords, from its help, with what follows the name there."""
    import subprocess  # not at `import forebay`, which each rank of a job may do

    done = subprocess.run([path, "run", "--help"], capture_output=True, text=True, check=True)
    # A notebook asks programs for colours even where their output is no terminal.
    plain = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
    found = re.findall(r"^ +(?:-\w, )?--([a-z-]+)( <|\[=<BOOL>\])?", plain, re.MULTILINE)
    named = {name.replace("-", "_"): follows for name, follows in found}
    return {name: follows for name, follows in named.items() if name not in _NOT_OFFERED}


def _words(
    path: str, options: dict[str, bool | Word | Sequence[Word] | None]
) -> tuple[list[str], dict[str, str]]:
    """Options for the command line, and environment variables for those that override a setting by False."""
    known = _options(path)
    words: list[str] = []
    variables: dict[str, str] = {}
    for name, value in options.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            suggestion = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"forebay.run() got an unknown option {name!r}{suggestion}")
        if value is False and known[name] == _SETTING:
            # On the command line, even `--no-profile=false` conflicts with `--trace`.
            variables["FOREBAY_" + name.upper()] = "false"
        if value is None or value is False:
            continue
        takes_value = known[name] == _VALUE
        if (value is True) == takes_value:
            raise TypeError(f"option {name!r} takes " + ("a value" if takes_value else "True or False"))
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
            continue
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        words += [f"{option}={_text(one)}" for one in several]
    return words, variables


def _text(word: Word) -> str:
    return os.fspath(word) if isinstance(word, os.PathLike) else str(word)


def run(
    script: str | os.PathLike[str],
    *arguments: Word,
    check: bool = True,
    cwd: str | os.PathLike[str] | None = None,
    **options: bool | Word | Sequence[Word] | None,
) -> Result:
    """Runs a job script with `forebay run`, waits for its end and returns the result.

    `arguments` are those of the script. A keyword is an option of `forebay run`, with underscores for
    hyphens: True is a flag, a list repeats the option, None and False leave it out. False also overrides
    a flag that the configuration sets. The output of the job and the messages of Forebay go to standard
    error; `output="FILE"` writes the job's standard output to a file. With `check`, a non-zero exit code
    raises JobError. The job works in the directory `cwd`, which `%d` in a directive means; relative
    paths are relative to it.

    Ctrl-C ends the job; Forebay stages out and removes the allocation, then KeyboardInterrupt is raised.
    """
    import subprocess

    path = find_forebay()
    words, variables = _words(path, options)
    command = [path, "run", "--json", *words, _text(script), "--", *map(_text, arguments)]
    environment = os.environ | variables
    sys.stderr.flush()
    # In a process group of its own the program gets each Ctrl-C from here only, once.
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=null, stdout=pipe, cwd=cwd, env=environment, process_group=0
    ) as process:
        answer = _answer(process)
    try:
        result = Result._of(json.loads(answer))
    except ValueError:
        hint = "standard error has its message"
        text = f"forebay run printed no result; its status is {process.returncode}"
        raise ForebayError(text, hint) from None
    if check and result.exit_code != 0:
        raise JobError(result)
    return result


def _answer(process: subprocess.Popen[bytes]) -> bytes:
    """What the program prints. Each Ctrl-C is forwarded once: a second signal kills the job at once."""
    stopped: KeyboardInterrupt | None = None
    while True:
        try:
            answer = process.communicate()[0]
        except KeyboardInterrupt as error:
            stopped = error
            process.send_signal(signal.SIGINT)
            continue
        if stopped is not None:
            raise stopped
        return answer
