"""`forebay plan machine`: machine files."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from forebay.plan.answer import MachineSummary
from forebay.plan.errors import PlanError
from forebay.plan.machine import Machine, figures_in, read_file, read_machine
from forebay.plan.units import rate_text
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
        click.echo(f"{storage.name}: {storage.servers} servers, {peak} peak for writes")


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
    from forebay.report.planning import console
    from forebay.report.terminal import whole_grid

    console().print(whole_grid(table))
