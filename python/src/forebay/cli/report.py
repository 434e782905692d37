"""`forebay report`: what is known of the I/O of a job, or how jobs differ."""

import os
from pathlib import Path

import click

from forebay.profiles import records, sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.machine import Machine, read_machine
from forebay.profiles.model import Profile

#: So many jobs can be told apart by a letter, and stand side by side.
JOBS_MAX = 6


@click.command(
    "report",
    epilog="""\b
Examples:
  forebay report                              the last run; its page goes into its record
  forebay report 4711 --html wrf.html         the job with this id, as a page
  forebay report old.darshan new.darshan      how two runs differ
  forebay report a b --pdf both.pdf           the same, side by side on paper
  forebay report --machine lustre.toml 4711   with the share of what the storage can do""",
)
@click.argument("sources_", nargs=-1, metavar="[LOG|JOBID|DIR]...")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the whole report as one HTML page."
)
@click.option(
    "--pdf", type=click.Path(path_type=Path, dir_okay=False), help="Write the whole report as a PDF."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one object with all figures in place of the summary."
)
@click.option(
    "--machine",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Machine file: what the storage can do.",
)
@click.option(
    "--advice/--no-advice",
    default=True,
    help="With findings and what to do about them (default), or without.",
)
def command(
    sources_: tuple[str, ...],
    html: Path | None,
    pdf: Path | None,
    as_json: bool,
    machine: Path | None,
    advice: bool,
) -> None:
    """Tell where the I/O time of a job went, and what to do about it.

    Without an argument: the last run. With one: that log, job or record. With two or more: how they differ.
    What is read: Forebay's records, Darshan logs, files of FOREBAY_MPI_STATS, text with the boxes of
    MPICH_MPIIO_STATS.

    A summary goes to the terminal. The page of a record is written into it as report.html; any other page
    only where --html says.
    """
    if len(sources_) > JOBS_MAX:
        raise ProfileError(
            f"{len(sources_)} jobs are too many to stand side by side", f"give at most {JOBS_MAX}"
        )
    storage = read_machine(machine) if machine else None
    profiles = sources.open_profiles(list(sources_), records.state_directory(os.environ))
    if html is None and not as_json and len(profiles) == 1:
        html = _page_beside(profiles[0])
    _tell(profiles, storage, advice, html, pdf, as_json)


def _page_beside(profile: Profile) -> Path | None:
    """Where the page of a record goes: into it, if that may be written."""
    folder = Path(profile.path)
    is_record = folder.is_dir() and (folder / "job.json").is_file() and os.access(folder, os.W_OK)
    return folder / "report.html" if is_record else None


def _tell(
    profiles: list[Profile],
    machine: Machine | None,
    advice: bool,
    html: Path | None,
    pdf: Path | None,
    as_json: bool,
) -> None:
    from forebay.report.assembly import Advised
    from forebay.report.comparison import compare
    from forebay.report.verdict import verdict

    jobs = [Advised(one, verdict(one), *(_advice(one, machine) if advice else ("", []))) for one in profiles]
    comparison = compare(profiles) if len(profiles) > 1 else None
    if as_json:
        from forebay.report.objects import as_json as told

        click.echo(told(jobs, comparison, machine, advice))
    else:
        _print(jobs, comparison, advice)
    if html or pdf:
        _write(jobs, comparison, machine, advice, html, pdf)
    elif not as_json:
        click.echo("hint: --html FILE writes the whole report as a page, --pdf FILE for paper", err=True)


def _advice(profile: Profile, machine: Machine | None):
    from forebay.advice.advise import findings
    from forebay.advice.reason import reason

    found = findings(profile, machine)
    return reason(profile, found).paragraph, found


def _print(jobs: list, comparison, advice: bool) -> None:
    from rich.console import Console

    from forebay.report import terminal

    console = Console(highlight=False, markup=False, emoji=False)
    if comparison:
        terminal.print_comparison(console, jobs, comparison)
    else:
        terminal.print_summary(console, jobs[0], advice)


def _write(
    jobs: list, comparison, machine: Machine | None, advice: bool, html: Path | None, pdf: Path | None
) -> None:
    from forebay.report import page
    from forebay.report.assembly import job_reports
    from forebay.report.written import write_whole

    reports = job_reports(jobs, machine)
    title = " and ".join(report.name for report in reports)
    for path, name, make in ((html, "page", page.html), (pdf, "PDF", page.pdf)):
        if path is None:
            continue
        content = make(title, reports, comparison, advice)
        try:
            write_whole(path, content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise ProfileError(
                f"{path}: {error.strerror}", "name a file in a directory that you may write to"
            ) from error
        click.echo(f"{name}: {path}", err=True)
