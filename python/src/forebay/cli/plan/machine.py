"""`forebay plan machine`: machine files."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import click
import msgspec

from forebay.atomic_file import write_atomically
from forebay.cli.node_list import NodeList
from forebay.cli.plan.pattern_options import SIZE
from forebay.plan.answer import MachineSummary
from forebay.plan.errors import PlanError
from forebay.plan.machine import Machine, figures_in, read_file, read_machine
from forebay.plan.machine_file import StorageKind
from forebay.plan.measure import Request, measure
from forebay.plan.measured_file import text
from forebay.plan.units import rate_text
from forebay.quantities import counted
from forebay.report.document import Cell, Column, Table


@click.group("machine", epilog="")
def command() -> None:
    """List, show and measure the machines that a plan can be for."""


@command.command("list", epilog="\b\nExample:\n  forebay plan machine list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_machines(as_json: bool) -> None:
    """List the installed machine files."""
    found = [_summary(path, read_machine(path)) for path in _installed()]
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    columns = [Column("machine", "text"), Column("nodes"), Column("storage", "text"), Column("file", "text")]
    rows = [
        [
            Cell(one.name),
            Cell("–" if one.nodes is None else str(one.nodes)),
            Cell(", ".join(one.storage)),
            Cell(one.file),
        ]
        for one in found
    ]
    _print(Table("Machines", columns, rows))


@command.command("show", epilog="\b\nExample:\n  forebay plan machine show shaheen2")
@click.argument("machine", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print the file as JSON.")
def show_machine(machine: str, as_json: bool) -> None:
    """Show the figures of a machine file with their sources."""
    file = read_file(machine)
    if as_json:
        click.echo(msgspec.json.encode(file).decode())
        return
    click.echo(f"{file.name}: {file.scale}")
    columns = [Column("figure", "text"), Column("value", "text"), Column("source", "text")]
    rows = [[Cell(key), Cell(str(one.value)), Cell(one.source)] for key, one in figures_in(file)]
    _print(Table("Figures", columns, rows))
    for storage in read_machine(machine).storage.values():
        peak = rate_text(storage.servers * storage.server_write_bytes_per_s)
        click.echo(f"{storage.name}: {counted(storage.servers, 'server')}, {peak} peak for writes")


def _installed() -> list[Path]:
    folder = os.environ.get("FOREBAY_MACHINES")
    if not folder:
        raise PlanError("no machine files are installed", "run make build, or make install")
    try:
        return sorted(path for path in Path(folder).iterdir() if path.suffix == ".toml")
    except OSError as error:
        raise PlanError(f"{folder}: {error.strerror}", "run make install") from error


def _summary(path: Path, machine: Machine) -> MachineSummary:
    return MachineSummary(
        name=path.stem, title=machine.name, nodes=machine.nodes, storage=list(machine.storage), file=str(path)
    )


def _print(table: Table) -> None:
    from forebay.report.planning.terminal import console
    from forebay.report.terminal import whole_grid

    console().print(whole_grid(table))


@command.command(
    "measure",
    epilog="""\b
Examples:
  forebay plan machine measure /nvme/me --output mine.toml
  forebay plan machine measure /scratch/me --nodes n1,n2,n3,n4 --processes 4
  forebay plan machine measure $DW_JOB_STRIPED --nodes n1,n2 --launcher 'srun -N1 -n1 -w'""",
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Write this file. [standard output]")
@click.option("--name", help="What the file calls the machine. [the name of this host]")
@click.option("--processes", type=click.INT, default=2, metavar="N", help="Processes on each node. [2]")
@click.option("--size", type=SIZE, default=256 << 20, help="Bytes of each process. [256MiB]")
@click.option(
    "--nodes",
    type=NodeList(),
    default=(),
    metavar="NODES",
    help="Measure on these nodes at once, such as n1,n2 or n[1-16].",
)
@click.option(
    "--launcher", default="ssh", metavar="WORDS", help="Starts a command on a node, whose name follows. [ssh]"
)
@click.option(
    "--kind",
    type=click.Choice(["lustre", "spectrum-scale", "datawarp", "directory"]),
    help="Kind of storage. [by the file system]",
)
@click.option("--servers", type=click.IntRange(min=1), metavar="N", help="Servers. [OSTs from lfs, else 1]")
def measure_machine(
    directory: Path,
    output: Path | None,
    name: str | None,
    processes: int,
    size: float,
    nodes: tuple[str, ...],
    launcher: str,
    kind: StorageKind | None,
    servers: int | None,
) -> None:
    """Write a machine file for the storage of a directory, from short measurements.

    It writes, reads and removes files in a new directory below DIRECTORY, three times after a first round
    that does not count. With --nodes, all nodes do so at the same time.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if output is not None and output.exists():
        raise PlanError(f"{output}: it exists", "name another file, or remove it")
    request = Request(
        directory=directory,
        processes=processes,
        bytes_per_process=int(size),
        nodes=nodes,
        launcher=launcher,
        kind=kind,
        servers=servers,
        command=shlex.join(["forebay", *sys.argv[1:]]),
    )
    found = text(request, measure(request), name or os.uname().nodename)
    if output is None:
        click.echo(found, nl=False)
        return
    try:
        write_atomically(output, found.encode())
    except OSError as error:
        hint = "name a file in a directory that you can write"
        raise PlanError(f"{output}: {error.strerror}", hint) from error
    read_machine(output)
    click.echo(f"machine file: {output}", err=True)
