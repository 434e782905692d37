"""Forebay in Python: run jobs, read their records, stage files. `import forebay` loads nothing heavy."""

from forebay import stage
from forebay.errors import ForebayError
from forebay.opening import NotRecordedError, open
from forebay.program import ProgramNotFoundError
from forebay.results import Record, Result, Staging
from forebay.running import JobError, run
from forebay.tables import PackageNotInstalledError

__version__ = "0.1.0"
__all__ = [
    "ForebayError",
    "JobError",
    "NotRecordedError",
    "PackageNotInstalledError",
    "ProgramNotFoundError",
    "Record",
    "Result",
    "Staging",
    "open",
    "run",
    "stage",
]
