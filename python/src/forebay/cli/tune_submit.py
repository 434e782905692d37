"""`forebay tune --submit`: the tuner itself as one job, so that all runs share its nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from forebay import series_client
from forebay.tune import study_setup
from forebay.tune.budget import RUNS_DEFAULT, Budget
from forebay.tune.job_script import script
from forebay.tune.study_setup import TuneRequest, study_directory
from forebay.tune.submitting import submit as submit_job
from forebay.tune.submitting import wall_time_s


def submit(request: TuneRequest, executor: str, *, render_only: bool) -> None:
    """Submits our command line, without --submit; with `render_only` shows the job's script."""
    study_setup.check_directory(request)
    job = script.read(request.script, study_setup.known_options(request))
    budget = request.budget or Budget(runs=request.trials or RUNS_DEFAULT)
    wall_s = wall_time_s(job, budget.runs or RUNS_DEFAULT, budget.seconds_max(job.nodes))
    submitted = submit_job(
        executor,
        job,
        [str(series_client.find_calling_forebay()), "tune", *_words(sys.argv[2:])],
        Path.cwd(),
        study=study_directory(request),
        wall_s=wall_s,
        render_only=render_only,
    )
    for note in submitted.notes:
        click.echo(f"forebay: {note}", err=True)
    if render_only:
        click.echo(submitted.script or "", nl=False)
        return
    click.echo(submitted.id)
    click.echo(f"forebay: what the tuner prints goes to {submitted.output}", err=True)
    if submitted.exit_code is not None:
        sys.exit(submitted.exit_code)


def _words(words: list[str]) -> list[str]:
    """Without --submit and its value, and without --dry-run, up to the words for the script."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*kept, word, *rest]
        if word == "--submit":
            next(rest, None)
        elif not word.startswith("--submit=") and word != "--dry-run":
            kept.append(word)
    return kept
