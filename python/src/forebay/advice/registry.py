"""All rules. A rule is a function that looks at a file or a job and yields what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from forebay.advice.file_metrics import FileView, JobView
from forebay.advice.unbound_finding import Draft

FileRule = Callable[[FileView], Iterator[Draft]]
JobRule = Callable[[JobView], Iterator[Draft]]

#: In the order of registration.
FILE_RULES: list[FileRule] = []
JOB_RULES: list[JobRule] = []


def file_rule(rule: FileRule) -> FileRule:
    """Registers a rule about each file that is worth a look."""
    FILE_RULES.append(rule)
    return rule


def job_rule(rule: JobRule) -> JobRule:
    """Registers a rule about the job as a whole."""
    JOB_RULES.append(rule)
    return rule
