"""`forebay plan checkpoint`: how often, to which storage, and how fast the drain must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from forebay.cli.plan.pattern_options import SIZE, TIME
from forebay.cli.plan.sweep import write_page
from forebay.plan.answer import CheckpointPlan


@click.command(
    "checkpoint",
    epilog="""\b
Example:
  forebay plan checkpoint --machine shaheen2 --size 2TB --nodes 512 --ranks 4096 --mtbf 24h""",
)
@click.option("--machine", required=True, metavar="NAME", help="Machine file: an installed name or a path.")
@click.option("--size", type=SIZE, required=True, help="Bytes of one checkpoint.")
@click.option("--nodes", type=click.INT, required=True, metavar="N", help="Compute nodes.")
@click.option("--ranks", type=click.INT, required=True, metavar="N", help="MPI ranks.")
@click.option("--mtbf", type=TIME, help="Mean time between failures of the job, such as 24h.")
@click.option("--node-mtbf", type=TIME, help="The same of one node, such as 1000d; divided by --nodes.")
@click.option(
    "--access",
    type=click.Choice(["file-per-process", "independent", "collective"]),
    default="file-per-process",
    help="How ranks write a checkpoint. [file-per-process]",
)
@click.option("--storage", "storages", multiple=True, metavar="NAME", help="Only this storage.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the answer as one HTML page."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool, html: Path | None, **options: Any) -> None:
    """Show how often to write a checkpoint, to which storage, and how fast its drain must be.

    The interval is that of Young and Daly, with the time that the model predicts for one checkpoint. A
    checkpoint in a burst buffer is drained to the parallel file system while the job computes. One on a
    node's own storage counts only once it is drained, since a lost node takes it along.

    A burst buffer is held between checkpoints, so its capacity has a price. The storages are sorted by the
    node-hours of a day that are no progress: lost ones of compute nodes, and those of storage.
    """
    from forebay.plan.checkpoint_plan import levels

    checkpoint_plan: CheckpointPlan = levels(**options)
    if as_json:
        click.echo(msgspec.json.encode(checkpoint_plan).decode())
    else:
        from forebay.report.planning.terminal import console, print_checkpoints

        print_checkpoints(console(), checkpoint_plan)
    if html:
        from forebay.report.planning.page import checkpoint_page

        write_page(html, checkpoint_page(checkpoint_plan))
