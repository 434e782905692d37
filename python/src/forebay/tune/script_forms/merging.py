"""Hints of ours joined with those that the user gives in MPICH_MPIIO_HINTS."""

from __future__ import annotations

import fnmatch
import re

from forebay.advice.hint_lines import hints_line
from forebay.tune.script_forms.job_lines import Hints, Job

#: Separators outside of #...#, a value that holds some (docs/reference/hints.md).
_RULES = re.compile(r",(?=(?:[^#]*#[^#]*#)*[^#]*$)")
_PAIRS = re.compile(r":(?=(?:[^#]*#[^#]*#)*[^#]*$)")
_BLANKS = " \t\n\r\\"


def parsed(text: str) -> list[tuple[str, dict[str, str]]]:
    """Rules in their order: a pattern, and its hints. What is no rule is left out."""
    rules = []
    for item in _RULES.split(text):
        pattern, *pairs = (part.strip(_BLANKS) for part in _PAIRS.split(item))
        hints = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if pattern:
            rules.append(
                (pattern, {key.strip(_BLANKS): value.strip(_BLANKS + "#") for key, value in hints.items()})
            )
    return rules


def merged(hints: Hints, job: Job) -> Hints:
    """Ours, each with what the user's rule for its files says besides.

    Of patterns that match only the first counts, which is ours.
    """
    own = _own_rules(job)
    result = {}
    for pattern, ours in hints.items():
        theirs = next((hints for known, hints in own if _covers(known, pattern)), {})
        result[pattern] = {**theirs, **ours}
    return result


def value_of(hints: Hints) -> str:
    """What MPICH_MPIIO_HINTS is set to, without quotes."""
    return hints_line(hints).split("=", 1)[1].strip("'")


def _own_rules(job: Job) -> list[tuple[str, dict[str, str]]]:
    """Without what our line cannot repeat: `$` that no shell expands, or expands in a branch alone."""
    own = [one for one in job.script.assignments if one.variable == "MPICH_MPIIO_HINTS"]
    texts = [(one.value, one.expands and not one.is_nested) for one in own]
    if not texts:
        texts = [(job.script.inherited.get("MPICH_MPIIO_HINTS", ""), False)]
    return [
        (pattern, {key: value for key, value in hints.items() if may_expand or not set("$`") & set(value)})
        for text, may_expand in texts
        for pattern, hints in parsed(text)
    ]


def _covers(known: str, pattern: str) -> bool:
    """Would files of `pattern`, which says the last part of a name, be the other's too?"""
    return fnmatch.fnmatchcase(pattern.rsplit("/", 1)[-1], known.rsplit("/", 1)[-1])
