"""Names of nodes on the command line, as Slurm writes them. As `forebay run --nodes` reads them."""

from __future__ import annotations

import re

import click

#: The most nodes that a list may name.
NODES_MAX = 100_000
_NO_LIST = "is no list of nodes: write for example n[1-16,20]"
_TOO_LONG = "names more than 100,000 nodes"
_WORD = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\]|[\[\]])+")
_NUMBERS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class NodeList(click.ParamType):
    """A list such as `n[01-16,20],login`, as a tuple of names in its order."""

    name = "nodes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Click shows the error."""
        if isinstance(value, tuple):
            return value
        names: list[str] = []
        for word in filter(None, map(str.strip, _WORD.findall(str(value)))):
            try:
                names += _expanded(word)
            except ValueError as error:
                self.fail(f"{word!r} {error}", param, ctx)
            if len(names) > NODES_MAX:
                self.fail(f"{value!r} {_TOO_LONG}", param, ctx)
        if not names:
            self.fail(f"{value!r} names no node: write for example n1,n2 or n[1-16,20]", param, ctx)
        return tuple(names)


def _expanded(word: str) -> list[str]:
    *pairs, end = _NUMBERS.split(word)
    names = [""]
    for before, numbers in zip(pairs[::2], map(_expanded_numbers, pairs[1::2]), strict=True):
        if len(names) * len(numbers) > NODES_MAX:
            raise ValueError(_TOO_LONG)
        names = [f"{name}{before}{number}" for name in names for number in numbers]
    if re.search(r"[\[\]]", "".join([*pairs[::2], end])):
        raise ValueError(_NO_LIST)
    return [name + end for name in names]


def _expanded_numbers(text: str) -> list[str]:
    """The numbers of `01-16,20`, each as wide as the first of its range."""
    numbers: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise ValueError(_NO_LIST)
        first, last = int(found[1]), int(found[2] or found[1])
        if len(numbers) + last - first >= NODES_MAX:
            raise ValueError(_TOO_LONG)
        numbers += [f"{number:0{len(found[1])}}" for number in range(first, last + 1)]
    return numbers
