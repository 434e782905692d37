"""The verbs of `forebay` that are written in Python; `forebay` starts them as `forebay-py VERB ...`."""

import importlib
import json
import sys
from itertools import takewhile
from typing import IO, Any

import click

from forebay.errors import ForebayError

#: Verb -> (module, what the list of verbs says). A module is loaded only when its verb is given.
VERBS: dict[str, tuple[str, str]] = {
    "bench": ("forebay.cli.bench", "Measure a file system with the phases of a known benchmark: IO500"),
    "export": ("forebay.cli.export", "Darshan logs of a recorded job (as `forebay profile export`)"),
    "plan": ("forebay.cli.plan", "What a job's I/O takes on each storage of a machine, and what to ask for"),
    "report": (
        "forebay.cli.report",
        "Where the I/O time of a job went, or how jobs differ: terminal, page, PDF",
    ),
    "tune": ("forebay.cli.tune", "Faster settings for a job script, found by running it, in a new script"),
    "why": ("forebay.cli.why", "What the last run waited for, or why it failed, and the next step"),
}


#: In a context's `meta`: whether the verb was given --json.
_AS_JSON = "forebay.as_json"


#: At the end of each help, as the commands of the other program have it.
_EXIT_CODES = """\b
Exit codes:
  0        success
  1        the command failed; the message says why
  2        the command line is wrong
  127      forebay-py could not be started"""
_BY_SIGNAL = "\n  128 + N  signal N ended it"
_MORE_EXIT_CODES = {"io500": _BY_SIGNAL, "simulate": _BY_SIGNAL, "tune": _BY_SIGNAL}


def with_exit_codes(name: str, command: click.Command) -> click.Command:
    """The command. Its help ends with its exit codes, and so does that of the commands below it."""
    if _EXIT_CODES not in (command.epilog or ""):
        codes = _EXIT_CODES + _MORE_EXIT_CODES.get(name, "")
        command.epilog = f"{command.epilog}\n\n{codes}" if command.epilog else codes
    for below, one in command.commands.items() if isinstance(command, click.Group) else ():
        with_exit_codes(below, one)
    return command


class Refused(click.ClickException):
    """An error as the command line tells it; with --json on standard output, too, as `forebay run` does."""

    def __init__(self, message: str, hint: str | None = None, exit_code: int = 1) -> None:
        super().__init__(message)
        self.hint, self.exit_code = hint, exit_code
        self.as_json = bool(click.get_current_context().meta.get(_AS_JSON))

    def show(self, file: IO[Any] | None = None) -> None:
        """Click calls this before it exits. A name in a message may hold what a terminal obeys."""
        from forebay.report.document import escape_hidden

        for what, text in (("error", self.message), ("hint", self.hint)):
            if text:
                click.echo(f"{what}: {escape_hidden(text)}", file=file or sys.stderr)
        if self.as_json:
            answer = {"error": self.message, "hint": self.hint, "profile": None, "exit_code": self.exit_code}
            click.echo(json.dumps(answer))


class Verbs(click.Group):
    """Commands by their names: each with its module, and with what a list of them says."""

    verbs: dict[str, tuple[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Click calls this for help and completion."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads the module of a command, whose help then ends with the exit codes."""
        if cmd_name not in self.verbs:
            return None
        return with_exit_codes(cmd_name, importlib.import_module(self.verbs[cmd_name][0]).command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, about) for verb, (_, about) in self.verbs.items()])


class _Verbs(Verbs):
    verbs = VERBS

    def make_context(self, info_name: str | None, *arguments: Any, **more: Any) -> click.Context:
        """Shows usage as the user types it: with `forebay`, not `forebay-py`."""
        return super().make_context("forebay", *arguments, **more)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name, verb, rest = super().resolve_command(ctx, args)
        ctx.meta[_AS_JSON] = "--json" in takewhile(lambda word: word != "--", rest)
        return "profile export" if name == "export" else name, verb, rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ForebayError as error:
            raise Refused(str(error), error.hint) from error


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Verbs of `forebay` that are written in Python."""
