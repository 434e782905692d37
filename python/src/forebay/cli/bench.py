"""`forebay bench`: benchmarks of file systems."""

from __future__ import annotations

import click

from forebay.cli import Verbs


class _Benchmarks(Verbs):
    verbs = {
        "io500": ("forebay.cli.bench_io500", "The phases of IO500: ior, mdtest and find, with their score")
    }


@click.command(
    "bench",
    cls=_Benchmarks,
    epilog="""\b
Example:
  forebay bench io500 /scratch/me""",
)
def command() -> None:
    """Measure a file system with the phases of a known benchmark."""
