"""The report of a simulation: for the terminal and as a page."""

from forebay.report.simulation.assembly import html
from forebay.report.simulation.terminal import print_summary

__all__ = ["html", "print_summary"]
