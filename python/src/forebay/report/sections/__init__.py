"""The sections of a report, one file each. What is not known, a section says.

Sections of what few sources have are there only if the source has it: mount points, storage targets, HDF5,
PnetCDF, modules of a log,
a trace.
"""

from collections.abc import Callable

from forebay.report.document import Section
from forebay.report.sections import (
    files,
    hints,
    libraries,
    log_modules,
    mounts,
    operations,
    over_time,
    pattern,
    sizes,
    targets,
    throughput,
    time_spent,
    timeline,
    writers,
)
from forebay.report.sections.context import SectionContext

#: In the order of the page.
OF_PROGRAM: tuple[Callable[[SectionContext], Section | None], ...] = (
    time_spent.section,
    throughput.section,
    over_time.section,
    timeline.section,
    sizes.section,
    operations.section,
    pattern.section,
    libraries.of_library("HDF5"),
    libraries.of_library("PnetCDF"),
    files.section,
    mounts.section,
    targets.section,
    writers.section,
    hints.section,
    log_modules.section,
)
