"""The program `forebay`. Needs the standard library only."""

import shutil
import sys
from pathlib import Path

from forebay.errors import ForebayError


class ProgramNotFoundError(ForebayError, FileNotFoundError):
    """The program `forebay` is not installed where this module looks for it."""


def find_forebay() -> str:
    """The path of `forebay`: from PATH, else from the folder of this Python, else from `make install`."""
    beside = Path(sys.executable).parent / "forebay"
    # PREFIX/lib/forebay/python is where `make install` puts Forebay's own Python.
    installed = Path(sys.prefix).parents[2] / "bin" / "forebay" if len(Path(sys.prefix).parts) > 3 else beside
    found = shutil.which("forebay") or next(
        (str(path) for path in (beside, installed) if path.is_file()), None
    )
    if found is None:
        raise ProgramNotFoundError("the program forebay was not found", "add its folder to PATH")
    return found
