"""`forebay plan simulate`: the jobs of a site on a shared pool."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from forebay.cli import Refused
from forebay.cli.interruption import Interrupted, interruptible
from forebay.plan.units import in_bytes
from forebay.simulate.distributions import amount
from forebay.simulate.errors import SimulationError
from forebay.simulate.policies import POLICIES, Policy
from forebay.simulate.site import JOBS_MAX, Site, read_site

if TYPE_CHECKING:
    from forebay.simulate.simulation import Simulation

SEED_MAX = 2**31 - 1


@click.command(
    "simulate",
    epilog="""\b
Examples:
  forebay plan simulate site.toml                                 the pool of the file, with all policies
  forebay plan simulate site.toml --pool 50TiB,100TiB,200TiB      the smallest of three pools that is enough
  forebay plan simulate site.toml --pool 50TiB,100TiB --wait 10min
  forebay plan simulate site.toml --granularity 20GiB,200GiB --policy stage-ahead
  forebay plan simulate site.toml --past jobs.txt --html page.html
                                                                  the jobs of sacct --parsable2, as a page
  forebay plan simulate site.toml --jobs 100000 --repetitions 5   a confidence interval""",
)
@click.argument("site", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--past",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Play past jobs: CSV, or what sacct --parsable2 or sacct --json prints. [jobs drawn as SITE says]",
)
@click.option("--jobs", type=click.IntRange(1, JOBS_MAX), metavar="N", help="Jobs to draw. [as SITE says]")
@click.option("--pool", metavar="SIZES", help="Sizes of the pool to try, separated by commas. [that of SITE]")
@click.option(
    "--granularity", metavar="SIZES", help="Granularities to try, separated by commas. [that of SITE]"
)
@click.option(
    "--policy", metavar="NAMES", help=f"Policies to try: {', '.join(POLICIES)}; separated by commas. [all]"
)
@click.option(
    "--wait",
    metavar="TIME",
    help="Mean wait that is short enough, such as 10min. [within 5 % of the shortest one]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    metavar="N",
    help="Seed of the drawn jobs. [random, and printed]",
)
@click.option(
    "--repetitions",
    type=click.IntRange(1, 100),
    default=1,
    help="Draw the jobs so many times, and give a confidence interval. [1]",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the result as one HTML page."
)
@click.option("--json", "as_json", is_flag=True, help="Print one object with all figures.")
def command(
    site: Path,
    past: Path | None,
    jobs: int | None,
    pool: str | None,
    granularity: str | None,
    policy: str | None,
    wait: str | None,
    seed: int | None,
    repetitions: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """Play many jobs on a shared pool of burst buffers, to find the pool and the policy that a site needs.

    SITE is a TOML file that describes the machine, the pool, the file system, and the jobs. The simulation
    gives each job nodes and granules of the pool, stages in and out over the shared file system, and counts
    waits. It tries each size with each granularity and policy, and names the smallest pool that is enough.
    """
    described = read_site(site)
    sizes, granularities, policies = _choices(described, pool, granularity, policy)
    from forebay.simulate.simulation import Request, simulate

    request = Request(
        site=described,
        past=past,
        jobs=jobs,
        repetitions=repetitions,
        seed=secrets.randbelow(SEED_MAX) if seed is None else seed,
        sizes_bytes=sizes,
        granularities_bytes=granularities,
        policies=policies,
        wait_max_s=_wait(wait) if wait else None,
    )
    try:
        with interruptible():
            found = simulate(request, lambda text: click.echo(f"forebay: {text}", err=True))
            _print(found, html, as_json)
    except Interrupted as stop:
        raise Refused("interrupted: no result is printed", None, 128 + stop.number) from stop


def _wait(text: str) -> float:
    try:
        return amount(text, "time")
    except ValueError as error:
        raise SimulationError(f"--wait: {error}", "give a time as 10min") from error


def _choices(
    site: Site, pool: str | None, granularity: str | None, policy: str | None
) -> tuple[list[int], list[int], list[Policy]]:
    sizes = _sizes("--pool", pool) if pool else [site.pool.size_bytes]
    granularities = _sizes("--granularity", granularity) if granularity else [site.pool.granularity_bytes]
    names = [name.strip() for name in policy.split(",")] if policy else list(POLICIES)
    for name in names:
        if name not in POLICIES:
            raise SimulationError(
                f"--policy {name!r}: there is no such policy", f"choose from {', '.join(POLICIES)}"
            )
    return sizes, granularities, list(dict.fromkeys(names))


def _sizes(option: str, text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(amount(in_bytes(one), "size")) for one in text.split(",")))
    except ValueError as error:
        raise SimulationError(f"{option}: {error}", "give sizes as 50TiB,100TiB") from error


def _print(found: Simulation, html: Path | None, as_json: bool) -> None:
    if html is not None:
        from forebay.atomic_file import write_atomically
        from forebay.report import simulation

        try:
            write_atomically(html, simulation.html(found).encode())
        except OSError as error:
            raise SimulationError(
                f"{html}: {error.strerror}", "name a file in a directory that exists"
            ) from error
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found)))
    else:
        from rich.console import Console

        from forebay.report import simulation

        simulation.print_summary(Console(highlight=False, markup=False, emoji=False), found)
    if html is not None:
        click.echo(f"page: {html}", err=True)
