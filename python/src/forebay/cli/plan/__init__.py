"""`forebay plan`: what a job's I/O takes on a machine. One file for each subcommand."""

from __future__ import annotations

import importlib
from typing import Any

import click

from forebay.cli import Verbs, with_exit_codes

#: Subcommand -> (module, what the list of commands says). A module is loaded only when its command is given.
SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "calibration": ("forebay.cli.plan.calibration", "Published figures, and what the model says of each"),
    "calls": (
        "forebay.cli.plan.calls",
        "System calls of collective I/O, and aggregators that balance, exactly",
    ),
    "capacity": ("forebay.cli.plan.capacity", "From capacity to storage nodes and back, exactly"),
    "checkpoint": ("forebay.cli.plan.checkpoint", "How often to write checkpoints, and to which storage"),
    "machine": ("forebay.cli.plan.machine", "List, show and measure machines"),
    "simulate": ("forebay.cli.plan.simulate", "Play the jobs of a site on a shared pool of burst buffers"),
    "study": ("forebay.cli.plan.study", "The tuner's search, against the model instead of a machine"),
    "sweep": ("forebay.cli.plan.sweep", "Curves of I/O time and efficiency against the number of servers"),
}
#: What `forebay plan JOB.sh` runs.
_JOB = "forebay.cli.plan.job"


class _Plan(Verbs):
    """The first word is a subcommand, or else everything belongs to the plan of a job."""

    verbs = SUBCOMMANDS

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in SUBCOMMANDS:
            return super().make_context(info_name, args, parent=parent, **extra)
        return self.own_command().make_context(info_name, args, parent=parent, **extra)

    def own_command(self) -> click.Command:
        """What runs without a subcommand."""
        return with_exit_codes("plan", importlib.import_module(_JOB).command)


@click.command("plan", cls=_Plan, epilog="")
def command() -> None:
    """Predict the I/O of a job on a machine."""
