"""`forebay plan JOB.sh`: the I/O time of a job on each storage of a machine, and what to ask for."""

from __future__ import annotations

import os
from typing import Any

import click
import msgspec

from forebay.cli.plan import SUBCOMMANDS
from forebay.cli.plan.pattern_options import pattern_options, question
from forebay.profiles import records


class _Job(click.Command):
    """Its help lists the other commands of `forebay plan`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in SUBCOMMANDS.items()])


@click.command(
    "plan",
    cls=_Job,
    epilog="""\b
Examples:
  forebay plan job.sh --machine shaheen2 --profile last
  forebay plan --machine cori1 --access collective --size 50GB --calls 160 --ranks 256 --nodes 8
  forebay plan --machine summit --access file-per-process --size 1TB --ranks 1024 --nodes 64 --json""",
)
@pattern_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool, **options: Any) -> None:
    """Predict the I/O time of a job on each storage of a machine, and what to ask for.

    What the job does comes from --profile, or from --access and the options after it. JOB.sh gives nodes,
    ranks and the capacity of the burst buffer. Nothing is run. Settings that are not fixed by an option are
    chosen: the number of servers that costs the fewest node-hours, with the best aggregators and stripe unit.

    What JOB.sh sets by itself (`#DW jobdw`, MPICH_MPIIO_HINTS, ROMIO_HINTS, `lfs setstripe`) is predicted as
    well, and the answer names the lines that change. Options count before the script.

    The band after each time holds nine of ten published figures. Outside of the published runs it is wider.
    The plan of a script is kept: `forebay report` shows it next to a later run.
    """
    from forebay.plan.planner import plan
    from forebay.plan.saved import save

    job_plan = plan(question(options))
    if options["script"]:
        save(job_plan, options["script"], records.state_directory(os.environ))
    if as_json:
        click.echo(msgspec.json.encode(job_plan).decode())
        return
    from forebay.report.planning.terminal import console, print_plan

    print_plan(console(), job_plan)
