"""Reading a user's job script: what it asks for, where it launches, which settings it makes by itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from forebay import series_client
from forebay.tune.errors import TuneError
from forebay.tune.job_script.jobdw import JobDwLine, jobdw_line
from forebay.tune.job_script.launching import Launch, launch_of, withheld_by
from forebay.tune.job_script.shell import Command, Nesting, Statement, commands, expands, statements

Scheduler = Literal["slurm", "lsf", "pbs", "flux"]
Syntax = Literal["sh", "csh"]

#: What a script may be written in for us to add lines to it.
_INTERPRETERS: dict[str, Syntax] = {
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "ksh93", "mksh", "zsh", "ash"), "sh"),
    **dict.fromkeys(("csh", "tcsh"), "csh"),
}
#: How a scheduler's lines begin, as crates/forebay-scheduler/src/header.rs reads them: Slurm's count first.
_SENTINELS: dict[Scheduler, re.Pattern[str]] = {
    "slurm": re.compile(r"#SBATCH\b(.*)"),
    "lsf": re.compile(r"#BSUB\b(.*)"),
    "pbs": re.compile(r"#PBS\b(.*)"),
    "flux": re.compile(r"[^\w\s]*#\W*(?:flux|FLUX):\s*(-.*)"),
}
_NODES = {
    "slurm": re.compile(r"(?:^|\s)(?:-N\s*|--nodes[=\s]\s*)(\d+)"),
    "lsf": re.compile(r"(?:^|\s)-nnodes\s+(\d+)"),
    "pbs": re.compile(r"(?:^|\s)-l\s*(?:\S*,)?(?:select|nodes)=(\d[^\s,]*)"),
    "flux": re.compile(r"(?:^|\s)(?:-N\s*|--nodes[=\s]\s*)(\d+)"),
}
_NAME = {
    "slurm": re.compile(r"(?:^|\s)(?:-J\s*|--job-name[=\s]\s*)(\S+)"),
    "lsf": re.compile(r"(?:^|\s)-J\s+([^\s\[]+)"),
    "pbs": re.compile(r"(?:^|\s)-N\s*(\S+)"),
    "flux": re.compile(r"(?:^|\s)--job-name[=\s]\s*(\S+)"),
}
#: Variables through which settings act; a script may set them by itself.
OWN_VARIABLES = ("MPICH_MPIIO_HINTS", "ROMIO_HINTS", "PNETCDF_HINTS")
_FUNCTION = re.compile(r"\s*(?:function\s+[\w-]+|[\w-]+\s*\(\s*\))")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class StripeLine(msgspec.Struct, frozen=True, kw_only=True):
    """An `lfs setstripe` of the script's own. Numbers are None where they are not written as such."""

    line: int  # of its statement, from 1
    end: int  # index behind the statement's last line
    count: int | None = None
    unit: int | None = None  # bytes
    directory: str | None = None  # as written; the first, if it names several


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """Where the script sets one of OWN_VARIABLES."""

    variable: str
    value: str  # without quotes; nothing in it is expanded
    expands: bool  # the shell expands something in the statement
    line: int  # of its statement, from 1
    end: int  # index behind the statement's last line
    is_nested: bool  # in a branch, a loop or a function: it may not be run


class JobScript(msgspec.Struct, frozen=True, kw_only=True):
    """A job script, read."""

    path: Path  # absolute
    text: str
    digest: str  # SHA-256 of its bytes
    syntax: Syntax
    scheduler: Scheduler | None  # whose lines it has
    name: str  # of the job; else the file's
    nodes: int
    ranks: int  # that its header asks for; launch lines may say otherwise
    time_limit_s: int | None
    burst_buffer: bool
    variables: tuple[str, ...]  # that name the burst buffer's namespaces: DW_JOB_STRIPED ...
    launches: tuple[Launch, ...]  # empty: it hides them, or has none; the profile decides
    jobdw: JobDwLine | None
    stripe_lines: tuple[StripeLine, ...]
    assignments: tuple[Assignment, ...]
    inherited: dict[str, str]  # of OWN_VARIABLES, what the environment had when the script was read
    begin: int  # index of the line before which lines are added


def read(path: Path, options: Sequence[str] = ()) -> JobScript:
    """Reads the script as `forebay run` with these options understands it.

    Raises TuneError if it cannot be read or run, or is not written in a shell.
    """
    path = path.absolute()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TuneError(f"{path}: {error.strerror}", "name a job script") from error
    preview = _preview(path, options)
    syntax = _syntax(path, preview["interpreter"])
    text = data.decode()  # forebay has read it as UTF-8
    lines = text.split("\n")
    scheduler, header = _header(lines)
    found = [(statement, command) for statement in statements(lines) for command in commands(statement.text)]
    launches = [(at, launch) for at, command in found if (launch := launch_of(command, at.first + 1))]
    assignments = _assignments(path, syntax, lines, found)
    _check_reach(path, assignments, launches)
    _check_exports(path, header if scheduler == "slurm" else [], found)
    return JobScript(
        path=path,
        text=text,
        digest=hashlib.sha256(data).hexdigest(),
        syntax=syntax,
        scheduler=scheduler,
        name=_first(_NAME, scheduler, header) or path.name,
        nodes=_nodes(scheduler, header),
        ranks=preview["tasks"],
        time_limit_s=preview["time_limit_s"],
        burst_buffer=preview["store"] is not None,
        variables=tuple(preview["variables"]),
        launches=tuple(launch for _, launch in launches),
        jobdw=jobdw_line(lines[: _header_lines(lines)]),
        stripe_lines=tuple(line for at, command in found if (line := stripe_line(at, command))),
        assignments=tuple(assignments),
        inherited={name: os.environ[name] for name in OWN_VARIABLES if os.environ.get(name)},
        begin=_begin(lines),
    )


def _preview(path: Path, options: Sequence[str]) -> dict:
    words = [str(series_client.find_calling_forebay()), "run", "--dry-run", "--json", *options, path.name]
    try:
        done = subprocess.run(words, cwd=path.parent, capture_output=True, text=True)
        answer = json.loads(done.stdout)
    except OSError as error:
        raise TuneError(f"{words[0]}: {error.strerror}", "run make install") from error
    except json.JSONDecodeError as error:
        said = done.stderr.strip().partition("\n")[0].removeprefix("error: ")
        message = (
            f"{path}: it cannot be run with {shlex.join(options)}: {said}" if options else f"{path}: {said}"
        )
        raise TuneError(message, "forebay run --help says what these options take") from error
    if "error" in answer:
        raise TuneError(answer["error"], answer.get("hint"))
    return answer


def _syntax(path: Path, interpreter: list[str]) -> Syntax:
    words = [PurePosixPath(word).name for word in interpreter if not word.startswith("-")]
    name = words[1] if words[:1] == ["env"] and len(words) > 1 else words[0]
    if name not in _INTERPRETERS:
        raise TuneError(
            f"{path}: it is run by {name}; lines can be added to scripts of {', '.join(_INTERPRETERS)}",
            "start it from a shell script, and tune that; or set MPICH_MPIIO_HINTS in it by hand",
        )
    return _INTERPRETERS[name]


def _header_lines(lines: list[str]) -> int:
    """How many lines the header block has: it ends at the first that is neither a comment nor blank.

    A line that continues a directive without its sentinel belongs to it, as forebay reads them.
    """
    continued = False
    for index, line in enumerate(lines):
        if line.strip() and not line.startswith("#") and not continued:
            return index
        continued = line.rstrip().endswith("\\") and (continued or re.match(r"#(DW|BB)\b", line) is not None)
    return len(lines)


def _header(lines: list[str]) -> tuple[Scheduler | None, list[str]]:
    """Whose lines there are, and their options: Slurm's, else those of the scheduler that comes first."""
    options: dict[Scheduler, list[str]] = {}
    for line in lines[: _header_lines(lines)]:
        for scheduler, pattern in _SENTINELS.items():
            if found := pattern.match(line):
                options.setdefault(scheduler, []).append(found[1].split(" #")[0])
                break
    if not options:
        return None, []
    scheduler = "slurm" if "slurm" in options else next(iter(options))
    return scheduler, options[scheduler]


def _first(patterns: dict, scheduler: Scheduler | None, header: list[str]) -> str | None:
    if scheduler is None:
        return None
    found = (patterns[scheduler].search(line) for line in header)
    return next((match[1].strip("\"'") for match in found if match), None)


def _nodes(scheduler: Scheduler | None, header: list[str]) -> int:
    """`-l select=2:ncpus=4+1`: parts joined by `+`, each so many times; the others are a number."""
    parts = (_first(_NODES, scheduler, header) or "1").split("+")
    numbers = [re.match(r"\d+", part) for part in parts]
    return sum(int(number[0]) if number else 1 for number in numbers)


def _begin(lines: list[str]) -> int:
    """Behind the header, and behind the `set -e` and the like that follow it."""
    begin = _header_lines(lines)
    for statement in statements(lines):
        if not re.match(r"set\s+[-+]", statement.text):
            break
        begin = statement.end
    return begin


def stripe_line(at: Statement, command: Command) -> StripeLine | None:
    """The statement as an `lfs setstripe`; None if it is none."""
    words = command.words
    if words[:2] != ["lfs", "setstripe"] or "-d" in words:
        return None
    pairs = zip(words[1:], words[2:], strict=False)
    directories = [word for before, word in pairs if _is_operand(before, word)]
    return StripeLine(
        line=at.first + 1,
        end=at.end,
        count=_number(words, r"(?:-c|--stripe-count=?|--count=?)(-?\d+)()"),
        unit=_number(words, r"(?:-[Ss]|--stripe-size=?|--size=?)(\d+)([kKmMgG]?)"),
        directory=directories[0] if directories else None,
    )


def _is_operand(before: str, word: str) -> bool:
    is_value = re.fullmatch(r"-[a-zA-Z]|--[^=]+", before) is not None
    return not (is_value or word.startswith("-") or re.fullmatch(r"[<>&]+|\d", word))


def _number(words: list[str], pattern: str) -> int | None:
    joined = [*words, *(a + b for a, b in zip(words, words[1:], strict=False) if a.startswith("-"))]
    found = next((match for word in joined if (match := re.fullmatch(pattern, word))), None)
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def _assignments(
    path: Path, syntax: Syntax, lines: list[str], found: list[tuple[Statement, Command]]
) -> list[Assignment]:
    nesting = Nesting(is_csh=syntax == "csh")
    nested = {at.first: nesting.is_nested(at.text) for at in statements(lines)}
    result = []
    for at, command in found:
        for variable in set(command.assignments).intersection(OWN_VARIABLES):
            if command.words:
                raise _unreachable(path, at.first + 1, f"sets {variable} for one command", variable)
            if _FUNCTION.match(at.text):
                raise _unreachable(path, at.first + 1, f"sets {variable} in a function of one line", variable)
            if at.text.rstrip().endswith(";;"):
                raise _unreachable(
                    path, at.first + 1, f"sets {variable} in the last line of a case", variable
                )
            value = command.assignments[variable]
            result.append(
                Assignment(
                    variable=variable,
                    value=value,
                    expands=expands(at.text),
                    line=at.first + 1,
                    end=at.end,
                    is_nested=nested[at.first],
                )
            )
    return result


def _check_reach(
    path: Path, assignments: Sequence[Assignment], launches: Sequence[tuple[Statement, Launch]]
) -> None:
    """Our lines stand behind those that set a variable, and must stand before the ranks that read it."""
    for at, launch in launches:
        for own in assignments:
            if own.line == launch.line:
                raise _unreachable(path, own.line, f"sets {own.variable} and starts ranks", own.variable)
        for variable in OWN_VARIABLES:
            words = zip(("", *launch.options), launch.options, strict=False)
            if any(passes_through(variable, before, word) for before, word in words):
                raise _unreachable(
                    path, at.first + 1, f"gives {variable} to {launch.launcher} alone", variable
                )


def _check_exports(path: Path, header: Sequence[str], found: Sequence[tuple[Statement, Command]]) -> None:
    """Ranks must get the variables that the script has."""
    exported = os.environ.get("SLURM_EXPORT_ENV", "ALL")
    for line in header:
        if said := re.search(r"(?:^|\s)--export[=\s]\s*(\S+)", line):
            exported = said[1].strip("\"'")
    for at, command in found:
        exported = command.assignments.get("SLURM_EXPORT_ENV", exported)
        if command.words[:2] in (["unset", "SLURM_EXPORT_ENV"], ["unsetenv", "SLURM_EXPORT_ENV"]):
            exported = "ALL"
        launch = launch_of(command, at.first + 1)
        if launch and (lost := withheld_by(launch, exported)):
            raise TuneError(
                f"{path}: line {at.first + 1} starts ranks without the script's variables ({lost}), "
                "where no setting reaches",
                "put `export SLURM_EXPORT_ENV=ALL` on a line of its own before it, or use srun --export=ALL"
                if launch.launcher == "srun"
                else f"leave {lost} out",
            )


def passes_through(variable: str, before: str, word: str) -> bool:
    """`-x NAME=VALUE`, `-genv NAME VALUE`, `--export=ALL,NAME=VALUE`: whatever the environment has."""
    by_name = before in ("-genv", "-env") and word == variable
    return by_name or re.search(rf"(?:^|[,=;]){variable}=", word) is not None


def _unreachable(path: Path, line: int, what: str, variable: str) -> TuneError:
    return TuneError(
        f"{path}: line {line} {what}, where no setting reaches",
        f"put `export {variable}=...` on a line of its own, before the line that starts ranks",
    )
