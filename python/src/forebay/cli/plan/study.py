"""`forebay plan study`: the tuner's search against the model."""

from __future__ import annotations

import random
import time
from typing import Any

import click
import msgspec

from forebay.cli.plan.pattern_options import pattern_options, question
from forebay.plan.errors import PlanError


@click.command(
    "study",
    epilog="""\b
Example:
  forebay plan study --machine shaheen2 --storage datawarp --ranks 1024 --nodes 32 \\
    --access collective --size 100GB --calls 10 --segment 1280B --known 32:1MiB""",
)
@pattern_options
@click.option(
    "--runs", type=click.IntRange(min=4), default=24, metavar="N", help="Runs for each number. [24]"
)
@click.option("--strategy", default="tpe", metavar="NAME", help="Strategy of the tuner. [tpe]")
@click.option("--seed", type=click.INT, help="Repeats a study. [drawn]")
@click.option(
    "--known",
    multiple=True,
    metavar="AGGREGATORS:UNIT",
    help="Settings to show next to the best, such as those that another tuner found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    as_json: bool, runs: int, strategy: str, seed: int | None, known: tuple[str, ...], **options: Any
) -> None:
    """Let the tuner search against the model instead of a machine, for each number of servers.

    It is the search of `forebay tune`, with the same phases and strategies. The model takes the place of
    runs, so a study of a large machine takes seconds. It shows what the tuner would find if the model were
    right.
    """
    from forebay.cli.plan.model_tuning import study

    asked = question(options)
    if len(asked.storages) != 1:
        raise PlanError(f"{len(asked.storages)} storages are named", "give one --storage")
    settings = [_known(text) for text in known]
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    began = time.monotonic()
    study_result = study(
        asked, asked.storages[0], runs_max=runs, strategy=strategy, seed=seed, known=settings
    )
    if as_json:
        click.echo(msgspec.json.encode(study_result).decode())
        return
    from forebay.report.planning.terminal import console, print_study

    print_study(console(), study_result)
    click.echo(f"forebay: {time.monotonic() - began:.1f} s, seed {seed}", err=True)


def _known(text: str) -> tuple[int, int]:
    from forebay.plan import units

    aggregators, _, unit = text.partition(":")
    try:
        return int(units.parse(int(aggregators), "count")), int(units.parse(units.in_bytes(unit), "size"))
    except ValueError as error:
        hint = "write cb_nodes and striping_unit, such as 32:1MiB"
        raise PlanError(f"--known {text}: {error}", hint) from error
