"""Lines for a job script that ask for what the planner recommends: `#DW`, hints, `lfs setstripe`."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence

import msgspec

from forebay.advice.hint_lines import file_pattern, hints_line
from forebay.plan.allocation import pool_of
from forebay.plan.answer import Change
from forebay.plan.in_script import Hints, Line, ScriptSettings, is_for, last_part
from forebay.plan.machine import Storage
from forebay.plan.pattern import Pattern, Settings

#: What sets hints in a line, what prints them to a file, and `lfs setstripe` with its operands.
_HINTS_SET = re.compile(r"""(MPICH_MPIIO_HINTS)(=|\s+)("[^"]*"|'[^']*'|[^\s;&|]*)""")
_PRINTS = re.compile(r"(?:printf|echo)\b[^;&|\n]*")
_SETSTRIPE = re.compile(r"lfs\s+setstripe\b[^;&|>\n]*?(\s*)(?=[;&|>\n]|$)")
#: The first unit that divides a size exactly writes it, as Slurm prints sizes.
_UNITS = (
    ("PiB", 1 << 50), ("PB", 10**15), ("TiB", 1 << 40), ("TB", 10**12), ("GiB", 1 << 30), ("GB", 10**9),
    ("MiB", 1 << 20), ("MB", 10**6), ("KiB", 1 << 10), ("KB", 10**3),
)  # fmt: skip


def exact_size(size_bytes: int, like_bytes: int = 0) -> str:
    """A size as `#DW` lines take it, without rounding: in the unit of `like_bytes`, such as a granule."""
    for unit, factor in _UNITS:
        if size_bytes and size_bytes % factor == 0 and like_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return f"{size_bytes}B"


def allocation_line(capacity_bytes: int, pool: str | None, granule_bytes: int) -> str:
    """A `#DW` line that asks for so much."""
    capacity = exact_size(capacity_bytes, granule_bytes)
    return f"#DW jobdw type=scratch access_mode=striped capacity={capacity}" + (
        f" pool={pool}" if pool else ""
    )


def lines(
    storage: Storage,
    patterns: Sequence[Pattern],
    settings: Sequence[Settings],
    capacity_bytes: int | None,
    *,
    is_persistent: bool = False,
    has_local: bool = False,
    is_csh: bool = False,
) -> list[str]:
    """What to put into the script for this storage, most important first."""
    found = []
    if storage.kind == "datawarp" and is_persistent:
        found.append("#DW persistentdw name=NAME")
    elif storage.kind == "datawarp" and capacity_bytes is not None:
        granule = round(storage.granularity_bytes or 0)
        found.append(allocation_line(capacity_bytes, storage.pool, granule))
    hints = {_pattern_of(pattern): _hints(storage, one) for pattern, one in _collective(patterns, settings)}
    if hints and storage.kind in ("datawarp", "lustre"):
        found.append(hints_line(hints))
    elif hints:
        found += _romio_file(next(iter(hints.values())))
    if storage.kind == "lustre":
        found += _setstripes(patterns, settings)
    if storage.kind == "node-local" and not has_local:
        found.append("#BSUB -alloc_flags nvme")
    return [as_csh(one) for one in found] if is_csh else found


def changes(
    script: ScriptSettings,
    storage: Storage,
    patterns: Sequence[Pattern],
    settings: Sequence[Settings],
    capacity_bytes: int | None,
) -> list[Change]:
    """Which lines of the script would be others, and which are new. What the script sets besides is kept."""
    found = []
    if storage.kind == "datawarp" and script.allocation and capacity_bytes:
        found.append(_allocation_change(script, script.allocation, storage, patterns, capacity_bytes))
    pairs = list(_collective(patterns, settings))
    if pairs and script.hints:
        found.append(_hints_change(script.hints, storage, pairs))
    elif pairs:
        plain = lines(storage, patterns, settings, None)
        found += [
            Change(line=None, last_line=None, old=None, new=text)
            for text in plain
            if text.startswith(("export", "printf"))
        ]
    if storage.kind == "lustre":
        found += _stripe_changes(script, _setstripes(patterns, settings))
    if script.is_csh:
        found = [msgspec.structs.replace(one, new=as_csh(one.new)) for one in found]
    found.sort(key=lambda one: math.inf if one.line is None else one.line)
    return [one for one in found if one.old != one.new]


def _allocation_change(
    script: ScriptSettings, line: Line, storage: Storage, patterns: Sequence[Pattern], capacity_bytes: int
) -> Change:
    """A capacity that gives as many nodes, and is no smaller, stays as it is."""
    text, pool = line.text, pool_of(storage)
    asked_bytes = script.capacity_bytes
    nodes = (
        [pool.allocate(one).nodes for one in (asked_bytes, capacity_bytes)]
        if pool and asked_bytes
        else [0, 1]
    )
    if nodes[0] != nodes[1]:
        capacity = exact_size(capacity_bytes, round(storage.granularity_bytes or 0))
        text = re.sub(r"capacity=[^\s,]+", f"capacity={capacity}", text)
    if script.is_private and any(one.access != "file-per-process" for one in patterns):
        text = re.sub(r"access_mode=private", "access_mode=striped", text)
    return _replacing(line, text)


def _hints_change(hints: Hints, storage: Storage, pairs: Sequence[tuple[Pattern, Settings]]) -> Change:
    """Each rule keeps its other hints, and rules for other files stay.

    Files of one rule that need different hints get rules of their own, where the MPI has some.
    """
    rules = {last_part(known): dict(own) for known, own in reversed(hints.rules)}
    wanted = [(_rule_of(hints, pattern), pattern, _hints(storage, one)) for pattern, one in pairs]
    for known, pattern, ours in wanted:
        is_shared = any(rule == known and other != ours for rule, _, other in wanted)
        name = _pattern_of(pattern) if known is None or is_shared else known
        rules[name] = rules.get(known or name, {}) | ours
    if hints.variable == "MPICH_MPIIO_HINTS":
        value = _expanded(hints_line(rules)).partition("=")[2]
        return _substituted(hints.line, _HINTS_SET, lambda found: f"{found[1]}{found[2]}{value}")
    text = romio_line(rules["*"] | wanted[0][2], hints.file or "romio.hints")
    if hints.line.end > hints.line.number:  # a here-document
        return _replacing(hints.line, text)
    return _substituted(hints.line, _PRINTS, lambda _: text)


def _rule_of(hints: Hints, pattern: Pattern) -> str | None:
    """The script's rule for the file; None without one."""
    return next((last_part(known) for known, _ in hints.rules if is_for(known, pattern)), None)


def _stripe_changes(script: ScriptSettings, wanted: list[str]) -> list[Change]:
    """One setting for all files replaces each line of the script in its directory."""
    if len(wanted) != 1 or not script.stripes:
        return [_new(text) for text in wanted]
    options = wanted[0].rpartition(" ")[0]
    return [
        _substituted(one.line, _SETSTRIPE, lambda found, one=one: f"{options} {one.directory}{found[1]}")
        for one in script.stripes
    ]


def _substituted(line: Line, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> Change:
    """What else is on the line stays."""
    return _replacing(line, pattern.sub(new, line.text, count=1))


def as_csh(text: str) -> str:
    """`setenv NAME VALUE` for `export NAME=VALUE`."""
    return re.sub(r"^export (\w+)=", r"setenv \1 ", text)


def _new(text: str) -> Change:
    return Change(line=None, last_line=None, old=None, new=text)


def _replacing(line: Line, text: str) -> Change:
    return Change(line=line.number, last_line=line.end, old=line.text, new=text)


def _collective(patterns: Sequence[Pattern], settings: Sequence[Settings]) -> list[tuple[Pattern, Settings]]:
    pairs = zip(patterns, settings, strict=True)
    return [(pattern, one) for pattern, one in pairs if pattern.access == "collective"]


def _pattern_of(pattern: Pattern) -> str:
    return "*" if pattern.name == "pattern" else file_pattern(pattern.name)


def _hints(storage: Storage, settings: Settings) -> dict[str, str]:
    hints = {"cb_nodes": str(settings.aggregators), "striping_unit": str(settings.stripe_bytes)}
    if storage.kind == "lustre":
        hints["striping_factor"] = str(settings.servers)
    if storage.kind not in ("datawarp", "lustre"):
        del hints["striping_unit"]
    return hints


def _romio_file(hints: dict[str, str]) -> list[str]:
    return [romio_line(hints, "romio.hints"), 'export ROMIO_HINTS="$PWD/romio.hints"']


def romio_line(hints: dict[str, str], file: str) -> str:
    """Writes a file of hints for ROMIO."""
    words = " ".join(_expanded(shlex.quote(f"{key} {value}")) for key, value in hints.items())
    return f"printf '%s\\n' {words} > {file}"


def _expanded(text: str) -> str:
    """With quotes between which a variable of the user's is expanded."""
    return text.replace("'", '"') if "$" in text and '"' not in text else text


def _setstripes(patterns: Sequence[Pattern], settings: Sequence[Settings]) -> list[str]:
    """A line for each directory: files that need other stripes need a directory of their own."""
    lines: dict[str, list[str]] = {}
    for pattern, one in zip(patterns, settings, strict=True):
        directory = "OUTPUT_DIRECTORY" if pattern.direction == "write" else "INPUT_DIRECTORY"
        line = f"lfs setstripe -c {one.stripe_count or one.servers} -S {one.stripe_bytes} {directory}"
        lines.setdefault(line, []).append(pattern.name)
    if len(lines) == 1:
        return list(lines)
    return [f"{line}  # of {', '.join(dict.fromkeys(names))}" for line, names in lines.items()]
