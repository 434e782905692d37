"""The user's script with lines added, and else byte for byte what it was."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from forebay.tune.job_script.script import JobScript
from forebay.tune.model import Configuration, Place, Plan
from forebay.tune.script_forms import syntax
from forebay.tune.script_forms.job_lines import Change, Line
from forebay.tune.script_forms.rendering import Block, block

#: What was tuned in a place: what to set there, {} to keep the default, and a comment.
Tuned = tuple[Plan, Configuration, str]
#: Parameter name -> the text of its gain.
_GainTexts = dict[str, str]
_FOLDED = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)


#: Above a line whose gain an earlier comment names.
TOGETHER = "Part of the same gain:"


def trial_script(script: JobScript, plan: Plan, configuration: Configuration, form: str) -> str:
    """The script with this configuration, to be run once. Raises TuneError if the form cannot say it.

    Where the plan knows of striping, each run sets it: the directory of runs keeps that of the last one.
    """
    made = block(script, plan, configuration, form, undoing=True)
    return _written(script, [line.text for line in made.lines], _variables([made]), made.changes, {})


def added_lines(script: JobScript, plan: Plan, configuration: Configuration, form: str) -> list[str]:
    """The lines that set it, those of the user's that are changed last: for a report."""
    made = block(script, plan, configuration, form)
    return [*(line.text for line in made.lines), *(change.text for change in made.changes)]


def tuned_script(
    script: JobScript,
    by_place: dict[Place, Tuned],
    form: str,
    head: Sequence[str],
    gains: dict[Place, dict[str, str]],
) -> str:
    """The script for the user to keep.

    `head` are lines of comment to begin with; `gains` have comments by the name or the pattern of a
    parameter. Where the places differ, or only one was tuned of a job that may run in both, lines count in
    their place alone, and so does a line of the user's that is changed, if it can stand in a branch.
    """
    blocks = {place: block(script, plan, chosen, form) for place, (plan, chosen, _) in by_place.items()}
    gain_texts = {place: _gain_texts(by_place[place][0], gains.get(place, {})) for place in by_place}
    shared = _shared(script, list(blocks.values()))
    own = {
        place: _comments([by_place[place][2]])
        + _with_comments([line for line in made.lines if line not in shared], [gain_texts[place]])
        for place, made in blocks.items()
    }
    everywhere = _with_comments(shared, gain_texts.values())
    if script.burst_buffer and any(_has_code(lines) for lines in own.values()):
        branches = (own.get(place, []) for place in ("burst-buffer", "file-system"))
        differing = syntax.on_burst_buffer(script, *(lines if _has_code(lines) else [] for lines in branches))
        added = [*everywhere, *differing]
    else:
        added = [*(line for lines in own.values() for line in lines), *everywhere]
    all_said = {name: text for one in gain_texts.values() for name, text in one.items()}
    changes = _changes(script, blocks)
    return _written(script, [*_comments(head), *added], _variables(blocks.values()), changes, all_said)


def _variables(blocks: Iterable[Block]) -> set[str | None]:
    return {line.variable for made in blocks for line in made.lines}


def _changes(script: JobScript, blocks: dict[Place, Block]) -> list[Change]:
    """The user's lines in other words: in the place they were tuned for, and as they were in the other."""
    found: dict[int, dict[Place, Change]] = {}
    for place, made in blocks.items():
        for change in made.changes:
            found.setdefault(change.first, {})[place] = change
    return [_branched(script, by_place) for by_place in found.values()]


def _branched(script: JobScript, by_place: dict[Place, Change]) -> Change:
    *_, last = by_place.values()
    old = "\n".join(script.text.split("\n")[last.first : last.end])
    texts = [by_place[one].text if one in by_place else old for one in ("burst-buffer", "file-system")]
    if (
        last.is_directive
        or not script.burst_buffer
        or texts[0] == texts[1]
        or not syntax.is_whole(script.syntax, old)
    ):
        return last
    indent = re.match(r"\s*", old)[0]
    branches = ([line.removeprefix(indent) for line in text.split("\n")] for text in texts)
    text = "\n".join(indent + line for line in syntax.on_burst_buffer(script, *branches))
    carries = frozenset().union(*(change.carries for change in by_place.values()))
    return Change(first=last.first, end=last.end, text=text, carries=carries)


def _shared(script: JobScript, blocks: list[Block]) -> list[Line]:
    """Lines that count wherever the job runs. One that runs in one place has no others."""
    if len(blocks) < 2:
        return []
    return [line for line in blocks[0].lines if all(line in other.lines for other in blocks[1:])]


def _gain_texts(plan: Plan, gains: dict[str, str]) -> _GainTexts:
    texts = {one.name: gains.get(one.name) or gains.get(one.pattern or "*") for one in plan.parameters}
    return {name: text for name, text in texts.items() if text}


def _with_comments(lines: list[Line], gain_texts: Iterable[_GainTexts]) -> list[str]:
    """A gain that several lines have together stands over the first of them."""
    result, above = [], set()
    for line in lines:
        texts = [text for one in gain_texts for text in _gained(one, line.carries)]
        result += _comments(TOGETHER if text in above else text for text in texts)
        above.update(texts)
        result.append(line.text)
    return result


def _gained(gain_texts: _GainTexts, carries: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(gain_texts[name] for name in sorted(carries) if name in gain_texts))


def _comments(texts: Iterable[str]) -> list[str]:
    """Lines that fit on a screen; a word that is longer stays whole."""
    lines = [line for text in texts if text for line in text.split("\n")]
    return [f"# {row}".rstrip() for line in lines for row in _FOLDED.wrap(line) or [""]]


def _has_code(lines: list[str]) -> bool:
    return any(not line.startswith("#") for line in lines)


def _written(
    script: JobScript,
    added: list[str],
    variables: set[str | None],
    changed: list[Change],
    gain_texts: _GainTexts,
) -> str:
    rows = script.text.split("\n")
    changes = {change.first: change for change in changed}
    places = _insertion_points(script, variables)
    result: list[str] = []
    at = 0
    while at <= len(rows):
        result += [places[at] + line for line in added] if at in places else []
        if at in changes:
            result += [*_change_comments(changes[at], rows, gain_texts), *changes[at].text.split("\n")]
            at = changes[at].end
        else:
            result += rows[at : at + 1]
            at += 1
    return "\n".join(result)


def _insertion_points(script: JobScript, variables: set[str | None]) -> dict[int, str]:
    """Indices of lines before which ours come: where commands begin, or behind what the script sets itself.

    Where all of its own lines stand in branches, none of them may be run: so at the beginning as well. Of
    several that follow each other ours come behind the last. With each index the indentation.
    """
    rows = script.text.split("\n")
    own = [assignment for assignment in script.assignments if assignment.variable in variables]
    places = {} if any(not one.is_nested for one in own) else {script.begin: ""}
    for one, following in zip(own, [*own[1:], None], strict=False):
        between = rows[one.end : following.line - 1] if following else ["the rest"]
        if any(row.strip() and not row.lstrip().startswith("#") for row in between):
            places[one.end] = re.match(r"\s*", rows[one.line - 1])[0]
    return places


def _change_comments(change: Change, rows: list[str], gain_texts: _GainTexts) -> list[str]:
    """What the change gained, and the words as they were."""
    indent = re.match(r"\s*", rows[change.first])[0] if gain_texts else ""
    was = [f"# was: {row.strip()}" for row in rows[change.first : change.end]]
    return [indent + line for line in [*_comments(_gained(gain_texts, change.carries)), *was]]
