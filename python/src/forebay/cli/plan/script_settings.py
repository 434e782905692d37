"""Reads what a job script sets by itself: hints, stripes and its allocation. Opens no file that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from forebay.plan.errors import PlanError
from forebay.plan.in_script import Hints, Line, ScriptSettings, Stripes, count
from forebay.plan.search import Fixed
from forebay.profiles import regular_file
from forebay.profiles.errors import ProfileError
from forebay.quantities import printable
from forebay.tune.job_script.launching import Launch, launch_of
from forebay.tune.job_script.script import passes_through, stripe_line
from forebay.tune.job_script.shell import Command, Statement, commands, statements
from forebay.tune.script_forms.merging import parsed

_CRAY, _ROMIO, _ALIGN = "MPICH_MPIIO_HINTS", "ROMIO_HINTS", "MPICH_MPIIO_CB_ALIGN"
#: Hints that the planner predicts, and those of them that are no number.
_COUNTS = ("cb_nodes", "striping_unit", "striping_factor", "cb_buffer_size")
_WORDS = ("romio_ds_write",)
#: Hints that change nothing that the planner predicts.
_WITHOUT_EFFECT = ("romio_cb_write", "romio_cb_read", "romio_ds_read", "romio_no_indep_rw")
_TASKS_PER_NODE = re.compile(r"#SBATCH\s(?:.*\s)?--ntasks-per-node[=\s]\s*(\d+)")
#: `cb_nodes 4` in what a script prints: pairs at the beginning of a line or of a word.
_PAIR = re.compile(r"([a-z]\w+)[ \t]+(\S+)")


class Reader:
    """One script."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.notes: list[str] = []
        self.ranks: int | None = None  # of the largest launch line
        self._files: dict[str, tuple[Line, str, dict[str, str]]] = {}  # by last part of the name

    def read(self, allocation: tuple[int, int, bool] | None) -> ScriptSettings:
        """`allocation`: line of `#DW jobdw`, its capacity in bytes, whether it is private alone."""
        hints: Hints | None = None
        stripes: list[Stripes] = []
        align: int | None = None
        for at, command in self._commands():
            self._keep_written(at, command)
            launch = launch_of(command, at.first + 1)
            if launch:
                self._keep_launch(launch)
            values = command.assignments
            if _CRAY in values:
                hints = self._replaced(hints, self._cray(at, values[_CRAY]))
            if _ROMIO in values:
                hints = self._replaced(hints, self._romio(at, values[_ROMIO]))
            if _ALIGN in values:
                align = self._align(at, values[_ALIGN])
            if found := self._stripes(at, command):
                stripes.append(found)
        if len({(one.count, one.unit_bytes) for one in stripes}) > 1:
            first = stripes[0]
            self.notes.append(
                f"the script has {len(stripes)} lines of lfs setstripe: files in other directories get "
                f"the stripes of line {first.line.number}"
            )
        line, capacity, is_private = allocation or (0, 0, False)
        return ScriptSettings(
            allocation=self._allocation_line(line) if line else None,
            capacity_bytes=capacity,
            is_private=is_private,
            hints=hints,
            stripes=tuple(stripes),
            cb_align=align,
            is_csh=re.match(r"#!.*\bt?csh\b", self.lines[0]) is not None,
        )

    def tasks_per_node(self) -> int | None:
        """`#SBATCH --ntasks-per-node=32`."""
        found = (_TASKS_PER_NODE.match(line) for line in self.lines)
        return next((count(match[1]) for match in found if match), None)

    def _commands(self) -> Iterator[tuple[Statement, Command]]:
        for statement in statements(self.lines):
            for command in commands(statement.text):
                yield statement, command

    def _keep_launch(self, launch: Launch) -> None:
        if launch.ranks:
            self.ranks = max(launch.ranks, self.ranks or 0)
        for name in (_CRAY, _ROMIO, _ALIGN):
            words = zip(("", *launch.options), launch.options, strict=False)
            if any(passes_through(name, before, word) for before, word in words):
                self.notes.append(
                    f"line {launch.line} of the script gives {name} in an option of {launch.launcher}, which "
                    "the plan does not take: export it on a line of its own"
                )

    def _line(self, at: Statement) -> Line:
        return Line(number=at.first + 1, end=at.end, text="\n".join(self.lines[at.first : at.end]))

    def _allocation_line(self, number: int) -> Line:
        """Of a directive that is continued: the line with its capacity."""
        index = number - 1
        while "capacity=" not in self.lines[index] and self.lines[index].rstrip().endswith("\\"):
            index += 1
        return Line(number=index + 1, end=index + 1, text=self.lines[index])

    def _replaced(self, before: Hints | None, after: Hints | None) -> Hints | None:
        if before and after and before.rules != after.rules:
            self.notes.append(
                f"lines {before.line.number} and {after.line.number} of the script both set hints: "
                f"the plan takes those of line {after.line.number}"
            )
        return after or before

    def _cray(self, at: Statement, value: str) -> Hints | None:
        rules = parsed(value)
        if not any(hints for _, hints in rules):
            self._unread(at.first + 1, f"{_CRAY}={value}")
            return None
        for _, hints in rules:
            self._check(at.first + 1, hints)
        return Hints(line=self._line(at), variable=_CRAY, rules=tuple(rules))

    def _romio(self, at: Statement, value: str) -> Hints | None:
        written = self._files.get(value.rsplit("/", 1)[-1])
        if written is None:
            self.notes.append(
                f"line {at.first + 1} of the script names {printable(value)} in {_ROMIO}, and no line that "
                "can be read writes that file: the plan takes the default hints"
            )
            return None
        line, file, hints = written
        self._check(line.number, hints)
        return Hints(line=line, variable=_ROMIO, rules=(("*", hints),), file=file)

    def _align(self, at: Statement, value: str) -> int | None:
        if value in ("0", "1", "2"):
            return int(value)
        self._unread(at.first + 1, f"{_ALIGN}={value}")
        return None

    def _check(self, line: int, hints: dict[str, str]) -> None:
        """Notes for values that are not known before the job runs, and for hints that are not predicted."""
        for key, value in hints.items():
            if (key in _COUNTS and count(value) is None) or (key in _WORDS and "$" in value):
                self._unread(line, f"{key}={value}")
        unknown = sorted(set(hints).difference(_COUNTS, _WORDS, _WITHOUT_EFFECT))
        if unknown:
            names = ", ".join(map(printable, unknown))
            self.notes.append(f"line {line} of the script sets {names}: the plan does not predict its effect")

    def _unread(self, line: int, what: str) -> None:
        why = "is known only when the job runs" if "$" in what or "`" in what else "cannot be read"
        self.notes.append(f"line {line} of the script: {printable(what)} {why}: the plan takes the default")

    def _keep_written(self, at: Statement, command: Command) -> None:
        """Pairs that `printf`, `echo` or `cat` with a here-document write to a file."""
        words = command.words
        arrow = next((word for word in (">", ">>") if word in words), None)
        if not words or words[0] not in ("printf", "echo", "cat") or arrow is None:
            return
        place = words.index(arrow) + 1
        if place >= len(words):
            return
        body = self.lines[at.first + 1 : at.end - 1] if "<<" in at.text else _printed(words[1 : place - 1])
        hints = {found[1]: found[2] for line in body if (found := _PAIR.match(line.strip()))}
        name = words[place].rsplit("/", 1)[-1]
        if arrow == ">>" and name in self._files:
            line, file, before = self._files[name]
            hints, written = before | hints, line
        else:
            written, file = self._line(at), words[place]
        if hints:
            self._files[name] = written, file, hints

    def _stripes(self, at: Statement, command: Command) -> Stripes | None:
        found = stripe_line(at, command)
        if found is None:
            return None
        if found.count is None and found.unit is None:
            self._unread(at.first + 1, at.text.strip())
        return Stripes(
            line=self._line(at), directory=found.directory or ".", count=found.count, unit_bytes=found.unit
        )


def _printed(words: Sequence[str]) -> list[str]:
    """Lines that `printf` or `echo` print, near enough: each word, and each part between `\\n`."""
    return [" ".join(words), *(line for word in words for line in re.split(r"\\n|\n", word))]


def overridden(script: ScriptSettings, fixed: Fixed) -> list[str]:
    """Notes on options that count before what the script sets."""
    hints = [own for _, own in script.hints.rules] if script.hints else []

    def of_hints(key: str) -> list[int | None]:
        return [count(own[key]) for own in hints if key in own]

    pairs = (
        ("--aggregators", fixed.aggregators, of_hints("cb_nodes")),
        (
            "--stripe-size",
            fixed.stripe_bytes,
            [*of_hints("striping_unit"), *(s.unit_bytes for s in script.stripes)],
        ),
        ("--servers", fixed.servers, [*of_hints("striping_factor"), *(s.count for s in script.stripes)]),
        ("--buffer-size", fixed.buffer_bytes, of_hints("cb_buffer_size")),
        ("--cb-align", fixed.cb_align, [script.cb_align] if script.cb_align is not None else []),
    )
    found = []
    for option, value, values in pairs:
        other = [one for one in values if one not in (None, value)]
        if value is not None and other:
            found.append(f"{option} {value} is taken, and not the {other[0]} of the script")
    if fixed.servers is not None and script.capacity_bytes:
        found.append(f"--servers {fixed.servers} is taken, and not the capacity of the script")
    return found


def text_of(path: Path) -> str:
    """The script. A pipe is refused, which could be read only once, or would never answer."""
    try:
        return regular_file.read_bytes(path).decode("utf-8", errors="replace")
    except ProfileError as error:
        raise PlanError(str(error), "name a job script; write what a pipe says into a file first") from error
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}", "check the path") from error


def read_settings(
    path: Path, text: str, allocation: tuple[int, int, bool] | None
) -> tuple[ScriptSettings, list[str], int | None, int | None]:
    """What the script sets, notes on what cannot be read, ranks of its largest launch, and tasks of a node.

    The numbers are None if no line says them.
    """
    reader = Reader(text)
    if allocation and allocation[0] > len(reader.lines):
        raise PlanError(f"{path}: the script changed while it was read", "plan it again")
    return reader.read(allocation), reader.notes, reader.ranks, reader.tasks_per_node()
