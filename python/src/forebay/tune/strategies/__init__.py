"""Search strategies, one file each: what to try next, given what was tried."""

from __future__ import annotations

import importlib
import pkgutil

from forebay.tune.errors import TuneError
from forebay.tune.trials.history import History, Strategy, Trial
from forebay.tune.trials.regression import Regression

__all__ = ["History", "Regression", "Strategy", "Trial", "named", "names"]


def names() -> list[str]:
    """All strategies there are: a file of this folder is one."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def named(name: str) -> Strategy:
    """The strategy of that name. Raises TuneError if there is none."""
    if name not in names():
        raise TuneError(f"no search strategy is called {name}", f"there are {', '.join(names())}")
    return importlib.import_module(f"forebay.tune.strategies.{name}").STRATEGY
