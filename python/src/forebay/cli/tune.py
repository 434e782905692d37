"""`forebay tune`: from a job script to a measured, better one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from forebay.cli import Refused
from forebay.cli.interruption import Interrupted, interruptible
from forebay.cli.tune_progress import progress
from forebay.profiles.machine import find_machine
from forebay.tune.budget import read_budget
from forebay.tune.errors import TuneError
from forebay.tune.model import PLACES
from forebay.tune.study_setup import TuneRequest, study_directory

STRATEGIES = ("tpe", "greedy", "random")
SUBMITTED_TO = ("slurm", "lsf", "pbs", "flux", "local")
#: Options that each run has, as `forebay run` takes them: those with a value, and those without.
_OF_RUNS = ("store", "capacity", "map", "pfs_dir", "pfs_model", "pfs_root")
_FLAGS_OF_RUNS = ("no_userns",)
#: In place of a model: no emulation, whatever the configuration says.
_NO_MODEL = "none"
_PATHS = ("store", "pfs_dir", "pfs_model", "pfs_root")


@click.command(
    "tune",
    epilog="""\b
Examples:
  forebay tune job.sh                            on the file system, and in its burst buffer if it has one
  forebay tune --dry-run job.sh                  what would be tried, and why: one run of the job
  forebay tune --budget 20 --budget 30min job.sh at most 20 runs, at most half an hour
  forebay tune --replay job.sh                   search on the recorded I/O, without the computation
  forebay tune --trials 10 job.sh                continue an existing study with ten more runs
  forebay tune --submit slurm --budget 2h job.sh submit the tuner as one job; all runs use its nodes
  forebay report job.tune                        show the report again""",
)
@click.argument("script", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("arguments", nargs=-1, metavar="[-- ARG...]")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="TEXT",
    help="Limit of the whole study: 20 (runs), 30min, 2h or 1.5nh (node-hours). May be repeated. [30]",
)
@click.option(
    "--trials", type=click.IntRange(min=1), metavar="N", help="Continue an existing study with N more runs."
)
@click.option(
    "--study", type=click.Path(path_type=Path, file_okay=False), help="Directory of the study. [JOB.tune]"
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="The tuned script. [JOB.tuned.sh]"
)
@click.option("--overwrite", is_flag=True, help="Replace an output file that the tuner did not write.")
@click.option(
    "--on",
    "on",
    type=click.Choice([*PLACES, "both"]),
    help="Where to tune. [both, if the script has #DW lines]",
)
@click.option("--strategy", type=click.Choice(STRATEGIES), help="How the search proposes settings. [tpe]")
@click.option(
    "--objective",
    type=click.Choice(["io", "job"]),
    help="Time to reduce: I/O time of the slowest rank, or the job's run time. [io]",
)
@click.option(
    "--check",
    metavar="COMMAND",
    help="Command that checks the output after each run. Status 0 means that it is right.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Do not copy matching files into the directories of the runs.",
)
@click.option(
    "--replay",
    is_flag=True,
    default=None,
    help="Search by repeating the recorded I/O, then confirm with the job.",
)
@click.option(
    "--think",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Share of the computation time that a replay waits. [0]",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="With --replay: use this trace, not one of the default run. Once for each MPI program of the job.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search. [random, kept in the study]")
@click.option(
    "--time-factor",
    type=click.FloatRange(min=1),
    metavar="F",
    help="End a trial after F times the default's time. [5]",
)
@click.option(
    "--dry-run", is_flag=True, help="Show which settings the search would try, for which files, and why."
)
@click.option("--submit", "submit_to", type=click.Choice(SUBMITTED_TO), help="Submit the tuner as one job.")
@click.option("--json", "as_json", is_flag=True, help="Print one object with all figures.")
@click.option("--store", envvar="FOREBAY_STORE", metavar="STORE", help="As for forebay run.")
@click.option("--capacity", metavar="SIZE", help="As for forebay run.")
@click.option("--no-userns", envvar="FOREBAY_NO_USERNS", is_flag=True, help="As for forebay run.")
@click.option("--map", multiple=True, metavar="PATH=DIR", help="As for forebay run.")
@click.option("--pfs-dir", envvar="FOREBAY_PFS_DIR", metavar="DIR", help="As for forebay run.")
@click.option("--pfs-model", envvar="FOREBAY_PFS_MODEL", metavar="NAME", help="As for forebay run.")
@click.option("--pfs-root", multiple=True, metavar="DIR", help="As for forebay run.")
def command(script: Path, arguments: tuple[str, ...], **options: Any) -> None:
    """Find faster I/O settings for a job, and write a script with them.

    The tuner runs SCRIPT in a copy of its directory: first as it is, then with settings of MPI-IO,
    PnetCDF, HDF5, Lustre and namespaces over several nodes that can matter for its files, one run after
    the other in one allocation. At the end it runs the best settings and the default in turn. Only
    settings that are faster there go into JOB.tuned.sh. JOB.tune keeps all measurements. The same
    command resumes an interrupted study.
    """
    if options["traces"] and not options["replay"]:
        raise TuneError("--trace names what --replay issues", "give --replay as well")
    if options["think"] is not None and not options["replay"]:
        raise TuneError("--think is of what --replay issues", "give --replay as well")
    if options["dry_run"] and options["as_json"]:
        raise TuneError(
            "--json prints the figures of a tuning, which --dry-run does not make", "leave one out"
        )
    request = _tune_request(script, arguments, options)
    if options["submit_to"]:
        from forebay.cli.tune_submit import submit

        submit(request, options["submit_to"], render_only=options["dry_run"])
        return
    try:
        if options["dry_run"]:
            _show_space(request)
        else:
            _tune(request, options["as_json"])
    except Interrupted as stop:
        raise _interrupted(request, stop) from stop


def _tune_request(script: Path, arguments: tuple[str, ...], options: dict[str, Any]) -> TuneRequest:
    on = options["on"]
    return TuneRequest(
        script=script,
        arguments=list(arguments) or None,
        budget=read_budget(options["budgets"]) if options["budgets"] else None,
        places=None if on is None else list(PLACES) if on == "both" else [on],
        traces=[os.path.abspath(trace) for trace in options["traces"]] or None,
        exclude=list(options["exclude"]) or None,
        options=_of_runs(options) or None,
        **{
            name: options[name]
            for name in (
                "trials", "study", "output", "overwrite", "strategy", "objective", "check", "replay", "think",
                "seed", "time_factor",
            )
        },
    )  # fmt: skip


def _of_runs(options: dict[str, Any]) -> list[str]:
    """Paths as they are from everywhere: the study may be continued from another directory."""
    words = []
    for name in _OF_RUNS:
        values = options[name] if isinstance(options[name], tuple) else (options[name],)
        for value in values:
            if name == "pfs_model" and value == _NO_MODEL:
                words.append(f"--pfs-model={_NO_MODEL}")  # one word: it names no machine to read
            elif value is not None:
                is_path = name in _PATHS and not str(value).startswith("memory")
                value = str(find_machine(value)) if name == "pfs_model" else value
                words += [f"--{name.replace('_', '-')}", os.path.abspath(value) if is_path else value]
    return words + [f"--{name.replace('_', '-')}" for name in _FLAGS_OF_RUNS if options[name]]


def _tune(request: TuneRequest, as_json: bool) -> None:
    from rich.console import Console

    from forebay.report import tuning as report
    from forebay.tune.tuning import tune

    with interruptible():
        with progress() as listener:
            study = tune(request, listener)
        page = report.write_page(study.directory)
        if as_json:
            click.echo(report.as_json(study))
        else:
            report.print_summary(Console(highlight=False, markup=False, emoji=False), study)
            if any(verdict.recommended for verdict in study.verdicts.values()):
                click.echo(f"tuned script: {study.head.output}")
        click.echo(f"page: {page}", err=True)


def _show_space(request: TuneRequest) -> None:
    from forebay.cli.tune_space import print_space
    from forebay.tune.tuning import preview

    with interruptible():
        with progress() as listener:
            previews = preview(request, listener)
        print_space(previews)


def _interrupted(request: TuneRequest, stop: Interrupted) -> Refused:
    """Tells the best until now; it is not proven."""
    from forebay.tune.tuning import best_so_far

    directory = study_directory(request)
    for line in best_so_far(directory):
        click.echo(line, err=True)
    hint = f"the same command resumes {directory}"
    return Refused("interrupted: what was measured is kept", hint, 128 + stop.number)
