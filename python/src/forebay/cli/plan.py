"""`forebay plan`: what a job or a site would get, without running a job."""

from __future__ import annotations

import click

from forebay.cli import Verbs


class _Plans(Verbs):
    verbs = {"simulate": ("forebay.cli.plan_simulate", "Play many jobs on a shared pool of burst buffers")}


@click.command(
    "plan",
    cls=_Plans,
    epilog="""\b
Example:
  forebay plan simulate site.toml""",
)
def command() -> None:
    """Predict I/O without running a job."""
