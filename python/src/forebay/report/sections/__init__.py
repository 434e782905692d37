"""The sections of a report, one file each. A section is there in every report: what is not known, it says."""

from collections.abc import Callable

from forebay.report.document import Section
from forebay.report.sections import (
    files,
    hints,
    operations,
    over_time,
    pattern,
    sizes,
    throughput,
    time_spent,
    writers,
)
from forebay.report.sections.scene import Scene

#: In the order of the page.
OF_PROGRAM: tuple[Callable[[Scene], Section], ...] = (
    time_spent.section,
    throughput.section,
    over_time.section,
    sizes.section,
    operations.section,
    pattern.section,
    files.section,
    writers.section,
    hints.section,
)
