"""Writes the manual pages of the verbs that are written in Python, from what their `--help` is made of.

`forebay __man`, which writes the other pages, knows nothing of their options.
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from forebay.cli import VERBS, main


def roff(text: str) -> str:
    """One line that troff prints as it is."""
    line = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


def texts(parts: list[str]) -> list[str]:
    """Each begins a paragraph, but those that begin with click's mark stay line by line."""
    lines = []
    for part in parts:
        kept = part.startswith("\b\n")
        body = [roff(line) for line in part.removeprefix("\b\n").splitlines()]
        lines += [".PP", *([".nf", *body, ".fi"] if kept else body)]
    return lines


def page(name: str, command: click.Command, context: click.Context) -> str:
    """The page of `forebay NAME`."""
    title = f"forebay-{name.replace(' ', '-')}"
    about = command.get_short_help_str(limit=200).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f'.TH {title} 1 "" forebay', ".SH NAME", f"{roff(title)} \\- {roff(about)}"]
    lines += [".SH SYNOPSIS", f"\\fBforebay {name}\\fR {roff(usage)}", ".SH DESCRIPTION"]
    lines += [*texts(inspect.cleandoc(command.help or "").split("\n\n")), ".SH OPTIONS"]
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    records = [option.get_help_record(context) for option in options]
    for option, meaning in filter(None, records):  # none of a hidden one
        lines += [".TP", f"\\fB{roff(option)}\\fR", roff(meaning)]
    if command.epilog:
        lines += [".SH EXTRA", *texts(inspect.cleandoc(command.epilog).split("\n\n"))]
    return "\n".join(lines) + "\n"


def pages(name: str, command: click.Command, parent: click.Context) -> Iterator[tuple[str, str]]:
    """(name, page) of a command and of those below it. A group's own page is that of its command without a name."""
    context = click.Context(command, info_name=name, parent=parent)
    own = command.own_command() if hasattr(command, "own_command") else command
    yield name, page(name, own, click.Context(own, info_name=name, parent=parent))
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            yield from pages(f"{name} {word}", command.get_command(context, word), context)


def write(directory: Path) -> None:
    """One page for each verb and subcommand."""
    context = click.Context(main, info_name="forebay")
    for verb in VERBS:
        name, command, _ = main.resolve_command(context, [verb])
        for of, text in pages(name, command, context):
            (directory / f"forebay-{of.replace(' ', '-')}.1").write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
