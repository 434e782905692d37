"""`forebay report`: what is known of the I/O of a job, how jobs differ, or what came of a tuning."""

import os
from pathlib import Path

import click

from forebay.profiles import records, sources
from forebay.profiles.errors import ProfileError
from forebay.profiles.machine import Machine, read_machine
from forebay.profiles.model import Profile

#: So many jobs have a letter each and fit side by side.
JOBS_MAX = 6
#: The file of a tuning in its directory, and how it begins.
STUDY_NAME = "study.jsonl"
STUDY_BEGINS = b'{"forebay_tune"'


@click.command(
    "report",
    epilog="""\b
Examples:
  forebay report                              the last run; the page goes into its record
  forebay report 4711 --html wrf.html         the job with this id, as a page
  forebay report old.darshan new.darshan      how two runs differ
  forebay report a b --pdf both.pdf           the same, side by side on paper
  forebay report wrf.tune                     the results of `forebay tune wrf.sh`
  forebay report --machine lustre.toml 4711   compared with the peak of the storage""",
)
@click.argument("sources_", nargs=-1, metavar="[LOG|JOBID|DIR|STUDY]...")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the whole report as one HTML page."
)
@click.option(
    "--pdf", type=click.Path(path_type=Path, dir_okay=False), help="Write the whole report as a PDF."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print all figures as one JSON object, not the summary."
)
@click.option(
    "--machine",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare with the peak of the storage that this machine file describes.",
)
@click.option(
    "--advice/--no-advice",
    default=True,
    help="Show findings and remedies, or leave them out. [--advice]",
)
def command(
    sources_: tuple[str, ...],
    html: Path | None,
    pdf: Path | None,
    as_json: bool,
    machine: Path | None,
    advice: bool,
) -> None:
    """Show where the I/O time of a job went, and what to do about it.

    Without an argument, or with `last`, it reports the last run. JOBID is an id, or at least 3 digits of its
    beginning or end. With two or more arguments, it shows how these jobs differ.
    It reads Forebay's records, Darshan logs, files of FOREBAY_MPI_STATS, and text with the boxes of
    MPICH_MPIIO_STATS. For a study of `forebay tune` (JOB.tune, or its study.jsonl), it shows the results.

    It prints a summary to the terminal. It writes the page of a record or of a study into it as report.html.
    For other sources it writes a page only with --html.
    """
    if len(sources_) > JOBS_MAX:
        raise ProfileError(
            f"{len(sources_)} jobs are too many to stand side by side", f"give at most {JOBS_MAX}"
        )
    studies = [source for source in sources_ if _is_study(source)]
    if studies:
        _print_study(studies[0], len(sources_), machine, html, pdf, as_json)
        return
    storage = read_machine(machine) if machine else None
    profiles = sources.open_profiles(list(sources_), records.state_directory(os.environ))
    if html is None and not as_json and len(profiles) == 1:
        html = _page_of_record(profiles[0])
    _print_jobs(profiles, storage, advice, html, pdf, as_json)


def _is_study(source: str) -> bool:
    """Decides by name and content: a study is a directory, and the file in it says what it is."""
    path = Path(source) / STUDY_NAME if os.path.isdir(source) else Path(source)
    if path.name != STUDY_NAME or not path.is_file() or not os.access(path, os.R_OK):
        return False
    with path.open("rb") as file:
        return file.read(len(STUDY_BEGINS)) == STUDY_BEGINS


def _print_study(
    source: str, sources_given: int, machine: Path | None, html: Path | None, pdf: Path | None, as_json: bool
) -> None:
    if sources_given > 1:
        raise ProfileError(
            f"{source} is the study of a tuning, which stands alone", "give one study, or jobs"
        )
    if machine:
        raise ProfileError(
            f"{source} is the study of a tuning: --machine tells nothing of it", "leave it out"
        )
    from forebay.report import tuning
    from forebay.tune.study import Study

    study = Study.open(Path(source))
    if as_json:
        click.echo(tuning.as_json(study))
    else:
        tuning.print_summary(_console(), study)
    pages = [("page", html, tuning.html), ("PDF", pdf, tuning.pdf)]
    for name, path, make in pages:
        if path is not None:
            _written(path, make(study))
            click.echo(f"{name}: {path}", err=True)
    if not (html or as_json) and os.access(study.directory, os.W_OK):
        click.echo(f"page: {tuning.write_page(study.directory)}", err=True)


def _page_of_record(profile: Profile) -> Path | None:
    """Where the page of a record goes: into it, if that may be written."""
    folder = Path(profile.path)
    is_record = folder.is_dir() and (folder / "job.json").is_file() and os.access(folder, os.W_OK)
    return folder / "report.html" if is_record else None


def _print_jobs(
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

    jobs = [
        Advised(one, verdict(one), *(_advice(one, machine) if advice else ("", [])), _prediction(one))
        for one in profiles
    ]
    comparison = compare(profiles) if len(profiles) > 1 else None
    if as_json:
        from forebay.report.objects import as_json as report_json

        click.echo(report_json(jobs, comparison, machine, advice))
    else:
        _print(jobs, comparison, advice)
    if html or pdf:
        _write(jobs, comparison, machine, advice, html, pdf)
    elif not as_json:
        click.echo("hint: --html FILE writes the whole report as a page, --pdf FILE for paper", err=True)


def _prediction(profile: Profile):
    """The plan of the job's script, if there is one that was made before the run."""
    if profile.job.script is None or profile.job.started_unix_s is None:
        return None
    from forebay.plan.saved import find
    from forebay.report.planning.later_run import predicted_run

    state = records.state_directory(os.environ)
    saved = find(profile.job.script, profile.job.started_unix_s, state)
    return predicted_run(saved, profile) if saved else None


def _advice(profile: Profile, machine: Machine | None):
    from forebay.advice.advise import findings
    from forebay.advice.diagnosis import reason

    found = findings(profile, machine)
    return reason(profile, found).paragraph, found


def _print(jobs: list, comparison, advice: bool) -> None:
    from forebay.report import terminal

    console = _console()
    if comparison:
        terminal.print_comparison(console, jobs, comparison)
    else:
        terminal.print_summary(console, jobs[0], advice)


def _console():
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _write(
    jobs: list, comparison, machine: Machine | None, advice: bool, html: Path | None, pdf: Path | None
) -> None:
    from forebay.report import page
    from forebay.report.assembly import job_reports

    reports = job_reports(jobs, machine)
    title = " and ".join(report.name for report in reports)
    for path, name, make in ((html, "page", page.html), (pdf, "PDF", page.pdf)):
        if path is None:
            continue
        _written(path, make(title, reports, comparison, advice))
        click.echo(f"{name}: {path}", err=True)


def _written(path: Path, content: str | bytes) -> None:
    from forebay.atomic_file import write_atomically

    try:
        write_atomically(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        hint = "name a file in a directory that you may write to"
        raise ProfileError(f"{path}: {error.strerror}", hint) from error
