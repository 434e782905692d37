"""`forebay plan calls`: system calls behind collective I/O, exactly."""

from __future__ import annotations

import click
import msgspec

from forebay.cli.plan.pattern_options import ExactSize
from forebay.plan import striping
from forebay.plan.answer import SystemCallCounts
from forebay.plan.collective import collective_calls, system_calls
from forebay.plan.errors import PlanError


@click.command(
    "calls",
    epilog="""\b
Example:
  forebay plan calls --size 50GiB --calls 160 --stripe-size 8MiB --ranks 256 \\
    --other-calls 11 --other-bytes 332B""",
)
@click.option("--size", type=ExactSize(), required=True, help="Bytes of all collective calls and ranks.")
@click.option("--calls", type=click.INT, required=True, metavar="N", help="Collective calls of each rank.")
@click.option("--stripe-size", type=ExactSize(), required=True, help="The stripe unit.")
@click.option("--ranks", type=click.INT, default=1, metavar="N", help="MPI ranks. [1]")
@click.option("--nodes", type=click.INT, default=1, metavar="N", help="Compute nodes. [1]")
@click.option("--servers", type=click.INT, metavar="N", help="OSTs or DataWarp nodes of the file.")
@click.option("--aggregators", type=click.INT, metavar="N", help="Aggregators to check for balance.")
@click.option("--other-calls", type=click.INT, default=0, metavar="N", help="Independent calls. [0]")
@click.option("--other-bytes", type=ExactSize(zero=True), default=0, help="Bytes of independent calls. [0B]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool, **options: int | None) -> None:
    """Show the system calls behind collective calls, and which aggregators balance.

    It counts as Cray's MPI does with its default alignment: each collective call is cut into pieces of one
    stripe. A size that the calls do not divide makes the first calls one byte larger.
    """
    counts = _counts(**options)
    if as_json:
        click.echo(msgspec.json.encode(counts).decode())
        return
    click.echo(f"collective calls of all ranks: {counts.collective_calls:,}")
    click.echo(f"system calls: {counts.system_calls:,}, {counts.average_bytes:,} bytes on average")
    click.echo(f"of these of one stripe: {counts.stripe_sized:,} ({counts.stripe_sized_percent:.2f} %)")
    click.echo(f"bytes: {counts.total_bytes:,}")
    if counts.aggregators_default is not None:
        click.echo(f"aggregators without a hint: {counts.aggregators_default}")
        click.echo(f"aggregators that balance: {', '.join(map(str, counts.aggregators_balanced)) or 'none'}")
    for sentence in counts.imbalance:
        click.echo(f"unbalanced: {sentence}")


def _counts(
    size: int,
    calls: int,
    stripe_size: int,
    ranks: int,
    nodes: int,
    servers: int | None,
    aggregators: int | None,
    other_calls: int,
    other_bytes: int,
) -> SystemCallCounts:
    striping.check_ranks(ranks, nodes)
    if calls < 1 or calls > size:
        raise PlanError(f"{calls} collective calls for {size} bytes", "give --calls of at least 1")
    for name, value in (("--servers", servers), ("--aggregators", aggregators)):
        if value is not None and value < 1:
            raise PlanError(f"{name} is {value}", "give at least 1")
    each, larger = divmod(size, calls)
    counted = system_calls(
        [(larger, each + 1), (calls - larger, each)], stripe_size, independent=(other_calls, other_bytes)
    )
    default = None
    if servers is not None:
        default = striping.aggregators_default("lustre", ranks=ranks, nodes=nodes, servers=servers)
    return SystemCallCounts(
        collective_calls=collective_calls(ranks, calls),
        system_calls=counted.system_calls,
        stripe_sized=counted.stripe_sized,
        stripe_sized_percent=counted.stripe_sized_percent,
        total_bytes=counted.total_bytes,
        average_bytes=counted.average_bytes,
        aggregators_default=default,
        aggregators_balanced=striping.aggregator_counts(ranks, servers) if servers else [],
        imbalance=striping.imbalance(ranks, aggregators, servers or aggregators) if aggregators else [],
    )
