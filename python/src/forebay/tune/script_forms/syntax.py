"""How the two families of shells say what we add. Words are given with their quotes."""

from __future__ import annotations

import re
import shlex

from forebay.tune.job_script.script import JobScript, Syntax

#: Set in jobs of `forebay run --no-burst-buffer`, whose namespaces are on the file system.
NO_BURST_BUFFER = "FOREBAY_NO_BURST_BUFFER"


def export(syntax: Syntax, name: str, word: str) -> str:
    """Sets an environment variable."""
    return f"setenv {name} {word}" if syntax == "csh" else f"export {name}={word}"


def set_default(syntax: Syntax, name: str, value: str) -> list[str]:
    """csh cannot read a variable that is not set: one that is not gets this value. Others need no line."""
    return [f"if (! $?{name}) setenv {name} {shlex.quote(value)}"] if syntax == "csh" else []


def quoted(text: str, *, expands: bool = False) -> str:
    """The text as one word; with `expands` the shell puts in its variables."""
    if not expands:
        return shlex.quote(text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def prepend(syntax: Syntax, name: str, word: str, separator: str) -> list[str]:
    """Puts the word before what the variable holds, if it holds something."""
    if syntax == "csh":  # a separator too many is passed over by those who read these variables
        return [*set_default(syntax, name, ""), export(syntax, name, f'{word}{separator}"${name}"')]
    return [export(syntax, name, f'{word}"${{{name}:+{separator}${name}}}"')]


def append(syntax: Syntax, name: str, text: str, separator: str) -> list[str]:
    """Puts the text behind what the variable holds, if it holds something."""
    if syntax == "csh":
        word = f'"${name}"{shlex.quote(separator + text)}'
        return [*set_default(syntax, name, ""), export(syntax, name, word)]
    return [export(syntax, name, f'"${{{name}:+${name}{separator}}}"{shlex.quote(text)}')]


def submitted_in(script: JobScript) -> str:
    """The directory the job was submitted in, for double quotes. PBS starts scripts in the home directory."""
    if script.scheduler != "pbs":
        return "$PWD" if script.syntax == "sh" else "$cwd"
    return "${PBS_O_WORKDIR:-$PWD}" if script.syntax == "sh" else "$PBS_O_WORKDIR"


def on_burst_buffer(script: JobScript, then: list[str], otherwise: list[str]) -> list[str]:
    """Lines for a job that has its burst buffer, and for one that has not."""
    if not (then or otherwise):
        return []
    is_csh = script.syntax == "csh"
    variable = script.variables[0] if script.variables else None  # else the node's own storage, as on Summit
    if is_csh:
        has_space = f"$?{variable}" if variable else '-d "/mnt/bb/$USER"'
        test, no_test = f"{has_space} && ! $?{NO_BURST_BUFFER}", f"! {has_space} || $?{NO_BURST_BUFFER}"
    else:
        has_space = f'-n "${{{variable}:-}}"' if variable else '-d "/mnt/bb/$USER"'
        test = f'{has_space} ] && [ -z "${{{NO_BURST_BUFFER}:-}}"'
        no_test = f'! {has_space} ] || [ -n "${{{NO_BURST_BUFFER}:-}}"'
    head, middle, tail = ("if ({}) then", "else", "endif") if is_csh else ("if [ {} ]; then", "else", "fi")
    if not then:
        return [head.format(no_test), *_indented(otherwise), tail]
    return [
        head.format(test),
        *_indented(then),
        *([middle, *_indented(otherwise)] if otherwise else []),
        tail,
    ]


#: Words that begin or end what goes on in other lines; the first of each pair in as many as the second.
_SH_PAIRS = (("if", "fi"), ("do", "done"), ("case", "esac"), ("{", "}"))
_CSH_PARTS = {"then", "else", "endif", "foreach", "while", "end", "switch", "case", "breaksw", "endsw"}


def is_whole(syntax: Syntax, statement: str) -> bool:
    """Whether it can stand in a branch by itself. False where that is not sure."""
    words = re.findall(r"[\w{}]+|;;|<<", statement)
    if "<<" in words:
        return False
    if syntax == "csh":
        return not _CSH_PARTS.intersection(words)
    begins_within = words[:1] and words[0] in {"then", "elif", "else", ";;", *(end for _, end in _SH_PAIRS)}
    return not begins_within and all(words.count(one) == words.count(other) for one, other in _SH_PAIRS)


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
