"""The pages of a study as files."""

from __future__ import annotations

from pathlib import Path

from forebay.advice.advise import findings
from forebay.advice.diagnosis import reason
from forebay.atomic_file import write_atomically
from forebay.profiles.model import Profile
from forebay.report import page
from forebay.report.assembly import Advised, job_reports
from forebay.report.comparison import compare
from forebay.report.tuning.assembly import comparison_name, study_report
from forebay.report.tuning.figures import figures
from forebay.report.tuning.records import Pair, pair
from forebay.report.verdict import verdict
from forebay.tune.errors import TuneError
from forebay.tune.study import Study

KIND = "tuning"


def write_page(study_directory: Path) -> Path:
    """Writes report.html into the study, and a page for each place with default and tuned side by side.

    TuneError if the study cannot be read, or a page not be written.
    """
    study = Study.open(study_directory)
    directory = study.directory
    study_figures = figures(study)
    for place in study_figures.places:
        found = pair(study_figures, place)
        if isinstance(found, Pair):
            _write(directory / comparison_name(place), _side_by_side(found))
    path = directory / "report.html"
    _write(path, html(study, linked=True))
    return path


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise TuneError(message, "`forebay report STUDY --html FILE` writes the page elsewhere") from error


def html(study: Study, linked: bool = False) -> str:
    """The page of a study."""
    return page.html(_title(study), [study_report(figures(study), linked)], None, advice=False, kind=KIND)


def pdf(study: Study) -> bytes:
    """The same on A4."""
    return page.pdf(
        _title(study), [study_report(figures(study), linked=False)], None, advice=False, kind=KIND
    )


def _title(study: Study) -> str:
    return f"{Path(study.head.script).name}, tuned"


def _side_by_side(found: Pair) -> str:
    reports = job_reports([_advised(one) for one in found.profiles], None)
    title = " and ".join(report.name for report in reports)
    return page.html(title, reports, compare(list(found.profiles)), advice=True)


def _advised(profile: Profile) -> Advised:
    found = findings(profile)
    return Advised(profile, verdict(profile), reason(profile, found).paragraph, found)
