"""Names of nodes on the command line, as Slurm writes them. As `forebay run --nodes` reads them."""

from __future__ import annotations

import re
from itertools import product

import click

_NODES_MAX = 100_000  # a list stands for at most so many
_COMMA = re.compile(r",(?![^\[\]]*\])")  # not within brackets
_PART = re.compile(r"\[([^\[\]]*)\]")


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
        for word in filter(None, map(str.strip, _COMMA.split(str(value)))):
            try:
                names += _expanded(word, _NODES_MAX - len(names))
            except ValueError:
                self.fail(f"{word!r} is no list of nodes: write for example n[1-16,20]", param, ctx)
        if not names:
            self.fail("it names no node: write for example n1,n2 or n[1-16,20]", param, ctx)
        return tuple(names)


def _expanded(word: str, most: int) -> list[str]:
    *pairs, end = _PART.split(word)
    texts, lists = pairs[::2], pairs[1::2]
    if re.search(r"[\[\]]", "".join([*texts, end])):
        raise ValueError(word)
    choices = [_numbers(numbers, most) for numbers in lists]
    count = 1
    for numbers in choices:
        count *= len(numbers)
    if count > most:
        raise ValueError(word)
    return ["".join(map("".join, zip(texts, chosen, strict=True))) + end for chosen in product(*choices)]


def _numbers(text: str, most: int) -> list[str]:
    """The numbers of `01-16,20`, each as wide as the first of its range."""
    numbers: list[str] = []
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if found is None:
            raise ValueError(text)
        start, stop = int(found[1]), int(found[2] or found[1])
        if stop < start or len(numbers) + stop - start >= most:
            raise ValueError(text)
        numbers += [f"{number:0{len(found[1])}}" for number in range(start, stop + 1)]
    return numbers
