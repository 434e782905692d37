"""`forebay bench io500`: the phases of IO500 in a directory."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

import click
import msgspec

from forebay import quantities
from forebay.bench.errors import BenchError
from forebay.bench.launching import LaunchRequest
from forebay.cli import Refused
from forebay.cli.interruption import Interrupted, interruptible
from forebay.cli.node_list import NodeList


class _Size(click.ParamType):
    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Whole bytes. Click shows the error."""
        try:
            if "/" in str(value):
                raise ValueError("a rate")
            found = quantities.size_bytes(str(value))
        except ValueError:
            self.fail(f"{value!r} is no size; write it as 20GiB", param, ctx)
        if not math.isfinite(found) or found < 1:
            self.fail(f"{value!r} is not above zero", param, ctx)
        return int(found)


@click.command(
    "io500",
    epilog="""\b
Examples:
  forebay bench io500 /scratch/me                       all phases, with one rank for each core of this node
  forebay bench io500 --stonewall 5 --data 4GiB .       a first look in about a minute
  forebay bench io500 -o /scratch/me --stonewall 300    as long as an official run
  forebay bench io500 --nodes n1,n2 --ranks 8 /scratch/me
  forebay bench io500 $DW_JOB_STRIPED                   in a job script: on the job's burst buffer""",
)
@click.argument("where", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("-o", "--directory", metavar="DIR", type=click.Path(path_type=Path), help="The same as DIR.")
@click.option(
    "--stonewall",
    "stonewall_s",
    type=click.IntRange(1, 86400),
    metavar="S",
    help="Seconds that each phase writes. [300 with ior and mdtest, else 10]",
)
@click.option(
    "--data", "data_bytes", type=_Size(), metavar="SIZE", help="Write at most so much. [half of what is free]"
)
@click.option(
    "--programs",
    type=click.Choice(["auto", "installed", "own"]),
    default="auto",
    help="Run ior and mdtest from PATH, or Forebay's reduced form. [auto: ior and mdtest if both exist]",
)
@click.option(
    "-n",
    "--ranks",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="MPI ranks on all nodes together. [the tasks of the job, else one for each core]",
)
@click.option(
    "--nodes",
    type=NodeList(),
    default=(),
    metavar="NODES",
    help="Nodes for the ranks, such as n1,n2 or n[1-16]. [those of the job]",
)
@click.option(
    "--hostfile", type=click.Path(path_type=Path, dir_okay=False), help="File with one node a line."
)
@click.option(
    "--launcher", metavar="COMMAND", help="What starts the ranks. [mpiexec, else srun in a job of Slurm]"
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="New directory for result_summary.txt and the logs. [./io500-DATE]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one object with all figures.")
def command(
    where: Path | None,
    directory: Path | None,
    stonewall_s: int | None,
    data_bytes: int | None,
    programs: str,
    ranks: int | None,
    nodes: tuple[str, ...],
    hostfile: Path | None,
    launcher: str | None,
    results: Path | None,
    as_json: bool,
) -> None:
    """Run the phases of the IO500 benchmark in DIR, and print the score.

    It writes and reads large and small transfers (ior easy and hard), creates, stats, reads and deletes many
    files (mdtest easy and hard), and searches them (find). It compares all that it reads with what it wrote.
    Its files are in a new directory below DIR, which it removes at the end, also when it is interrupted or
    killed. Without ior and mdtest in PATH, a program of Forebay stands in for them. The result is never
    an official submission to IO500.
    """
    from forebay.bench.run import Request, run

    if (where is None) == (directory is None):
        raise click.UsageError("give one directory: as DIR, or with --directory")
    target = _new_directory(results)
    launch = LaunchRequest(ranks=ranks, nodes=nodes, hostfile=hostfile, launcher=launcher)
    request = Request(
        directory=where or directory,
        launch=launch,
        stonewall_s=stonewall_s,
        data_bytes=data_bytes,
        programs=programs,
    )
    try:
        with interruptible():
            finished = run(
                request, lambda text: click.echo(f"forebay: {quantities.printable(text)}", err=True)
            )
    except Interrupted as stop:
        raise Refused(
            "interrupted: the files of the benchmark are removed", None, 128 + stop.number
        ) from stop
    _print(finished, target, as_json)


def _new_directory(results: Path | None) -> Path:
    """Where the result goes. BenchError if that cannot be, before anything is measured."""
    path = results or Path(datetime.now().strftime("io500-%Y.%m.%d-%H.%M.%S"))
    if os.path.lexists(path):
        raise BenchError(f"{path} exists", "name a new directory with --results")
    parent = path.absolute().parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise BenchError(f"{parent}: no directory can be made there", "name another place with --results")
    return path


def _print(finished: object, target: Path, as_json: bool) -> None:
    """Writes the files, prints the result, and fails if data were wrong."""
    from forebay.bench import summary

    run = finished.run
    run.results = str(target.absolute())
    files = {
        "result_summary.txt": summary.summary(run),
        "result.txt": summary.details(run),
        "config.ini": summary.configuration(run, finished.operations_max),
        **{f"{name}.txt": text for name, text in finished.logs.items()},
    }
    failed = None
    try:
        _write(target, files)
    except OSError as error:
        run.results, failed = None, error
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(run)))
    else:
        click.echo(summary.summary(run), nl=False)
        for note in (*run.notes, *run.not_official_because):
            click.echo(f"note: {note}")
        if run.results:
            click.echo(f"results: {run.results}", err=True)
    if failed:
        click.echo(f"error: {target}: the results cannot be written: {failed}", err=True)
    wrong = [phase.name for phase in run.phases if phase.verified is False]
    if wrong:
        click.echo(f"error: {', '.join(wrong)}: what was read is not what was written", err=True)
        click.echo(
            "hint: the file system lost or mixed up data; its log, or a run on one node, may say more",
            err=True,
        )
    if wrong or failed:
        raise click.exceptions.Exit(1)


def _write(target: Path, files: dict[str, str]) -> None:
    """All files or none: they are made in a temporary directory that is then renamed. Raises OSError."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", dir=target.absolute().parent))
    try:
        for name, text in files.items():
            (temporary / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        temporary.chmod(0o755)
        os.rename(temporary, target.absolute())
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
