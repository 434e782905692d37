"""`forebay plan sweep`: curves against the number of servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from forebay.cli.plan.pattern_options import pattern_options, question
from forebay.plan.errors import PlanError


@click.command(
    "sweep",
    epilog="""\b
Example:
  forebay plan sweep --machine shaheen2 --profile last --html sweep.html""",
)
@pattern_options
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the curves as one HTML page."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool, html: Path | None, **options: Any) -> None:
    """Show I/O time and efficiency against the number of servers, for each storage of a machine.

    The options say what the job does, as for `forebay plan`. For each number of servers, the best aggregators
    and stripe unit are chosen.
    """
    from forebay.plan.planner import sweep

    sweep_result = sweep(question(options))
    if as_json:
        click.echo(msgspec.json.encode(sweep_result).decode())
    else:
        from forebay.report.planning.terminal import console, print_sweep

        print_sweep(console(), sweep_result)
    if html:
        from forebay.report.planning.page import sweep_page

        write_page(html, sweep_page(sweep_result))


def write_page(path: Path, text: str) -> None:
    """Writes a page whole, and says where it is."""
    from forebay.atomic_file import write_atomically

    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise PlanError(
            f"{path}: {error.strerror}", "name a file in a directory that you can write"
        ) from error
    click.echo(f"page: {path}", err=True)
