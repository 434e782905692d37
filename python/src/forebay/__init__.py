"""Forebay in Python: run jobs, read their records, stage files. Each name is loaded when it is first used."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_MODULES = {
    "ForebayError": "errors",
    "JobError": "running",
    "NotRecordedError": "opening",
    "PackageNotInstalledError": "tables",
    "ProgramNotFoundError": "program",
    "Record": "results",
    "Result": "results",
    "Staging": "results",
    "open": "opening",
    "run": "running",
}


def __getattr__(name: str) -> object:
    """A public name, when it is first used: a command that needs none of them starts faster."""
    if name == "stage":
        return importlib.import_module("forebay.stage")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"forebay.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
