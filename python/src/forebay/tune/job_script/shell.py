"""Statements of a shell script, as far as a reader of job scripts needs them. Nothing is expanded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec

#: A quote that is open for more lines than this is taken for a lone character, as in a comment.
QUOTED_LINES_MAX = 200
#: Words behind which a command begins.
_BEFORE_A_COMMAND = frozenset(
    (
        "if",
        "then",
        "elif",
        "else",
        "while",
        "until",
        "do",
        "{",
        "!",
        "time",
        "exec",
        "nohup",
        "command",
        "env",
    )
)
_SEPARATOR = re.compile(r"[();<>|&]+")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<-?\s*[\"'\\]?([\w.]+)[\"']?")


class Statement(msgspec.Struct, frozen=True):
    """Lines that belong together: joined by backslashes, by a quotation, by a here-document."""

    first: int  # index of its first line
    end: int  # index behind its last one
    text: str  # without the trailing comment, backslashes and here-document


class Command(msgspec.Struct, frozen=True):
    """A simple command: the words, and the assignments in front of them."""

    assignments: dict[str, str]
    words: list[str]


def statements(lines: list[str]) -> Iterator[Statement]:
    """All but blank lines and those that are comments."""
    index = 0
    while index < len(lines):
        if not lines[index].strip() or lines[index].lstrip().startswith("#"):
            index += 1
            continue
        text, end = _joined(lines, index)
        yield Statement(index, end := _behind_here_document(lines, text, end), text)
        index = end


def _joined(lines: list[str], first: int) -> tuple[str, int]:
    text, index = "", first
    while index < len(lines):
        text += lines[index]
        index += 1
        comment, is_quoted = _scan(text)
        if is_quoted and index - first < QUOTED_LINES_MAX and index < len(lines):
            text = text[:-1] if text.endswith("\\") else text + "\n"
        elif text.endswith("\\") and comment is None:
            text = text[:-1] + " "
        else:
            return text[:comment], index
    return text, index


def _scan(text: str) -> tuple[int | None, bool]:
    """Where a comment begins, and whether a quotation is open at the end."""
    quote, skip = "", False
    for at, letter in enumerate(text):
        if skip:
            skip = False
        elif letter == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter == "#" and (at == 0 or text[at - 1] in " \t\n;&|("):
            return at, False
    return None, bool(quote)


#: Words that begin and end what may not be run, or not in this shell; of csh those that begin a statement.
_ENDS = {"if": "fi", "case": "esac", "do": "done", "{": "}", "(": ")"}
_CSH_ENDS = {"if": "endif", "foreach": "end", "while": "end", "switch": "endsw"}


class Nesting:
    """Follows the statements of a script, and says which may not be run."""

    def __init__(self, *, is_csh: bool) -> None:
        self._is_csh = is_csh
        self._open: list[str] = []  # the words that end what is open

    def is_nested(self, statement: str) -> bool:
        """Whether a command in the next statement may not be run: it is in a branch, a loop, a function."""
        words, was_open = _words(statement), bool(self._open)
        opens = self._follow_csh(words) if self._is_csh else self._follow(words)
        return was_open or opens or bool({"&&", "||"} & set(words))

    def _follow_csh(self, words: list[str]) -> bool:
        first = words[0] if words else ""
        if self._open and first == self._open[-1]:
            self._open.pop()
        elif first in _CSH_ENDS and (first != "if" or words[-1] == "then"):
            self._open.append(_CSH_ENDS[first])
        return first in _CSH_ENDS

    def _follow(self, words: list[str]) -> bool:
        opens, is_command = False, True
        for word in words:
            parts = list(word) if set(word) <= set("()") else [word]
            for part in parts:
                is_word = is_command or part in "()"
                if is_word and self._open and part == self._open[-1]:
                    self._open.pop()
                elif is_word and part in _ENDS:
                    self._open.append(_ENDS[part])
                    opens = opens or word != "()"
            is_command = _SEPARATOR.fullmatch(word) is not None or (is_command and word in _BEFORE_A_COMMAND)
        return opens


def expands(text: str) -> bool:
    """Does the shell put something in place of a `$` or a backquote in it?"""
    quote, skip = "", False
    for letter in text:
        if skip:
            skip = False
        elif letter == "\\" and quote != "'":
            skip = True
        elif letter in "$`" and quote != "'":
            return True
        elif letter in "'\"":
            quote = {"": letter, letter: ""}.get(quote, quote)
    return False


def _behind_here_document(lines: list[str], text: str, end: int) -> int:
    found = _HERE_DOCUMENT.search(text)
    if found is None or "<<<" in text:
        return end
    for index in range(end, len(lines)):
        if lines[index].strip() == found[1]:
            return index + 1
    return end


def commands(text: str) -> Iterator[Command]:
    """The simple commands of a statement, inside of loops and `$( )` too."""
    words: list[str] = []
    for word in [*_words(text), ";"]:
        if _SEPARATOR.fullmatch(word) and not set(word) <= set("<>&") - {"&"}:
            yield from _command(words)
            words = []
        elif not words and word in _BEFORE_A_COMMAND:
            continue
        else:
            words.append(word)


def _words(text: str) -> list[str]:
    splitter = shlex.shlex(text, posix=True, punctuation_chars=True)
    splitter.whitespace_split, splitter.commenters = True, ""
    try:
        return list(splitter)
    except ValueError:  # a quotation that is not closed
        return _SEPARATOR.sub(lambda found: f" {found[0]} ", text).split()


def _command(words: list[str]) -> Iterator[Command]:
    assignments: dict[str, str] = {}
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        assignments[found[1]] = found[2]
        words = words[1:]
        while words and words[0] in _BEFORE_A_COMMAND:
            words = words[1:]
    if words and words[0] in ("export", "declare", "typeset"):
        exported = [found for word in words[1:] if (found := _ASSIGNMENT.fullmatch(word))]
        yield Command({found[1]: found[2] for found in exported}, [])
    elif words and words[0] == "setenv":
        yield Command({words[1]: " ".join(words[2:3])} if len(words) > 1 else {}, [])
    elif words or assignments:
        yield Command(assignments, words)
