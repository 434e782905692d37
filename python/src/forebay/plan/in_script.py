"""What a job script asks for and sets by itself, as far as the planner can predict it."""

from __future__ import annotations

import fnmatch

import msgspec

from forebay.plan.pattern import Pattern

#: Hint -> how it is read.
_SIEVING = {"enable": True, "disable": False}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the script."""

    number: int  # from 1
    end: int  # its last line, of a here-document or a line that is continued
    text: str  # of all of them


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """Hints for files: those of MPICH_MPIIO_HINTS, or of a file that ROMIO_HINTS names."""

    line: Line
    variable: str  # MPICH_MPIIO_HINTS or ROMIO_HINTS
    rules: tuple[
        tuple[str, dict[str, str]], ...
    ]  # pattern of names, its hints; the first that matches counts
    file: str | None = None  # ROMIO_HINTS: that the line writes, as it is written there


class Stripes(msgspec.Struct, frozen=True, kw_only=True):
    """An `lfs setstripe`. None: the script does not say it as a number."""

    line: Line
    directory: str  # as written
    count: int | None  # -1: all OSTs
    unit_bytes: int | None


class FileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the script sets for one pattern. None: it does not."""

    aggregators: int | None = None
    stripe_bytes: int | None = None  # a hint
    stripe_count: int | None = None  # a hint
    directory_stripe_bytes: int | None = None  # `lfs setstripe`
    directory_stripe_count: int | None = None
    buffer_bytes: int | None = None
    cb_align: int | None = None
    data_sieving: bool | None = None


class ScriptSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    allocation: Line | None = None  # `#DW jobdw`, the line with capacity=
    capacity_bytes: int = 0  # 0: it asks for none
    is_private: bool = False  # each node has a directory of its own, and there is no shared one
    hints: Hints | None = None
    stripes: tuple[Stripes, ...] = ()
    cb_align: int | None = None
    is_csh: bool = False

    def for_pattern(self, pattern: Pattern) -> FileSettings:
        """Numbers that cannot be read are None."""
        hints = self.hints_of(pattern)
        stripes = self._stripes_of(pattern)
        return FileSettings(
            aggregators=count(hints.get("cb_nodes")),
            stripe_bytes=count(hints.get("striping_unit")),
            stripe_count=count(hints.get("striping_factor")),
            directory_stripe_bytes=stripes.unit_bytes if stripes else None,
            directory_stripe_count=stripes.count if stripes else None,
            buffer_bytes=count(hints.get("cb_buffer_size")),
            cb_align=self.cb_align,
            data_sieving=_SIEVING.get(hints.get("romio_ds_write", "")),
        )

    def hints_of(self, pattern: Pattern) -> dict[str, str]:
        """Of the first rule for the file; a described pattern has no name, and takes the first rule."""
        rules = self.hints.rules if self.hints else ()
        return next((hints for known, hints in rules if is_for(known, pattern)), {})

    def _stripes_of(self, pattern: Pattern) -> Stripes | None:
        """Of the file's directory, if the script names it, else of the first line."""
        named = (one for one in self.stripes if one.directory.strip("./") in pattern.name.split("/")[:-1])
        return next(named, self.stripes[0] if self.stripes else None)


def is_for(known: str, pattern: Pattern) -> bool:
    """Whether a rule is for the files of the pattern: the last parts of both names are compared."""
    name = pattern.name.rsplit("/", 1)[-1]
    return pattern.name == "pattern" or fnmatch.fnmatchcase(name, last_part(known))


def last_part(known: str) -> str:
    """`wrfout*` of `$DW_JOB_STRIPED/wrfout*`."""
    return known.rsplit("/", 1)[-1]


def count(value: str | None) -> int | None:
    """A whole number from 1 on; None for a variable and what is no such number."""
    return int(value) if value is not None and value.isascii() and value.isdigit() and int(value) else None
