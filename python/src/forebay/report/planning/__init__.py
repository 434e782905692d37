"""A plan for the terminal and as a page: what each storage of a machine gives, and the curves of a sweep."""

from forebay.report.planning.page import calibration_page, sweep_page
from forebay.report.planning.terminal import (
    console,
    print_calibration,
    print_checkpoints,
    print_plan,
    print_sweep,
)

__all__ = [
    "calibration_page",
    "console",
    "print_calibration",
    "print_checkpoints",
    "print_plan",
    "print_sweep",
    "sweep_page",
]
