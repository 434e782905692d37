"""The verbs of `forebay` that are written in Python; `forebay` starts them as `forebay-py VERB ...`."""

import importlib

import click

#: Verb -> (module, what the list of verbs says). A module is loaded only when its verb is given.
VERBS: dict[str, tuple[str, str]] = {
    "export": ("forebay.cli.export", "Darshan logs of a recorded job (as `forebay profile export`)"),
}


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(VERBS[cmd_name][0]).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, about) for verb, (_, about) in VERBS.items()])


@click.command(cls=_Verbs)
def main() -> None:
    """Verbs of `forebay` that are written in Python."""
