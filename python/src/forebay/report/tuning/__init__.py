"""The report of a study of `forebay tune`: for the terminal, as pages, on paper, as JSON."""

from forebay.report.tuning.objects import as_json
from forebay.report.tuning.study_pages import html, pdf, write_page
from forebay.report.tuning.terminal import print_summary

__all__ = ["as_json", "html", "pdf", "print_summary", "write_page"]
