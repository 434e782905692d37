"""A description of a parallel file system: `machines/*.toml` (docs/reference/machine-files.md)."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import msgspec

from forebay.profiles.errors import ProfileError
from forebay.quantities import size_bytes


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the storage can do at most, and how it lays out files by default."""

    name: str
    targets: int
    target_bytes_per_s: float
    client_bytes_per_s: float
    stripe_count: int
    stripe_bytes: int

    @property
    def peak_bytes_per_s(self) -> float:
        """All storage targets together."""
        return self.targets * self.target_bytes_per_s

    @property
    def peak_is(self) -> str:
        """How the peak was computed."""
        return f"{self.name}: {self.targets} storage targets of {self.target_bytes_per_s / 1e6:g} MB/s each"


def find_machine(named: str | Path) -> Path:
    """The file itself, or the installed one of that name. `forebay` says where those are."""
    installed = os.environ.get("FOREBAY_MACHINES")
    path = Path(named)
    if path.exists() or len(path.parts) != 1 or not installed:
        return path
    file = Path(installed, path if path.suffix == ".toml" else f"{path}.toml")
    return file if file.is_file() else path


def read_machine(named: Path) -> Machine:
    """Reads a machine file, named by its path or as one that is installed.

    ProfileError if it cannot be read, or lacks what the peak needs.
    """
    path = find_machine(named)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return Machine(
            name=tables["name"],
            targets=int(tables["targets"]["count"]["value"]),
            target_bytes_per_s=size_bytes(tables["targets"]["bandwidth"]["value"]),
            client_bytes_per_s=size_bytes(tables["client"]["bandwidth"]["value"]),
            stripe_count=int(tables["layout"]["stripe_count"]["value"]),
            stripe_bytes=int(size_bytes(tables["layout"]["stripe_size"]["value"])),
        )
    except OSError as error:
        raise ProfileError(f"{path}: {error.strerror}", "forebay machines lists what is installed") from error
    except KeyError as error:
        if error.args == ("targets",) and "storage" in tables:
            message = f"{path}: this machine file is for `forebay plan` alone: it has no targets"
            raise ProfileError(message, "forebay machines lists those that have") from error
        raise ProfileError(
            f"{path}: {error} is missing", "docs/reference/machine-files.md has the keys of a machine file"
        ) from error
    except (ValueError, TypeError) as error:
        raise ProfileError(
            f"{path}: {error}", "docs/reference/machine-files.md has the form of a machine file"
        ) from error
