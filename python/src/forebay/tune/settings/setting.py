"""What a setting is: when it applies, with which values, what it excludes, and how its effect is seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from forebay.profiles.model import File
from forebay.tune.model import Configuration, Machine, Parameter, Refusal
from forebay.tune.settings.job_view import Files, Job

MIB = 1 << 20
KIB = 1 << 10


class SettingContext(msgspec.Struct, frozen=True, kw_only=True):
    """What else is set where a parameter's value is looked at."""

    parameters: dict[str, Parameter]  # of the plan, by name
    configuration: Configuration
    machine: Machine
    pattern: str | None

    def _name(self, setting: str) -> str | None:
        names = (setting if self.pattern is None else f"{self.pattern}:{setting}", setting)
        return next((name for name in names if name in self.parameters), None)

    def offers(self, setting: str) -> bool:
        """Is the setting a parameter of these files, or of the job?"""
        return self._name(setting) is not None

    def value(self, setting: str) -> str | None:
        """What is in force for these files: the value given, else the default if known."""
        name = self._name(setting)
        if name is None:
            return None
        return self.configuration.get(name, self.parameters[name].default)

    def given(self, setting: str) -> str | None:
        """The value that the configuration gives, for these files or for the job."""
        name = self._name(setting)
        return None if name is None else self.configuration.get(name)

    @property
    def is_buffered(self) -> bool:
        """May any collective call on these files be buffered? All are, or may be, unless switched off."""
        if self.value("romio_no_indep_rw") == "true":
            return True
        directions = [direction for direction in ("read", "write") if self.offers(f"romio_cb_{direction}")]
        return not directions or any(
            self.value(f"romio_cb_{direction}") != "disable" for direction in directions
        )


class Setting:
    """One setting; each file in this folder has one or a family of them (docs/reference/settings.md).

    A new one overrides `for_files` or `for_job`, and of the others those in which it has a say.
    """

    #: As in MPICH_MPIIO_HINTS, PNETCDF_HINTS; `lfs_` and more for what is no hint.
    name: str
    #: Who says when it matters.
    source: str
    #: Does it act on which system calls are made? The layout on storage targets does not.
    is_in_calls = True

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """For the files of one pattern; None: nobody would expect it there."""
        return None

    def for_job(
        self, job: Job, patterns: Sequence[Files], created: Sequence[File]
    ) -> Parameter | Refusal | None:
        """For the whole job: `patterns` are its MPI-IO files, `created` all files that it writes."""
        return None

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """Can the value not act, given what else is set?"""
        return False

    def conflict(self, value: str, context: SettingContext) -> str | None:
        """Why the value must not be combined with the other settings; None: it may."""
        return None

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """Do the counters of a trial show the value, against the default run? None: they do not tell.

        The files are those of the parameter's pattern, or all.
        """
        return None

    def may_be_default_behaviour(self, value: str, default: Sequence[File]) -> bool:
        """May the default run have done the same by itself, so that the same calls say nothing?"""
        return False

    def parameter(
        self,
        files: Files | None,
        values: Iterable[str | int],
        *,
        default: str | None,
        ordered: bool,
        reason: str,
    ) -> Parameter | Refusal:
        """The parameter; a refusal if no value other than the default is left."""
        kept = tuple(str(value) for value in values if str(value) != default)
        if not kept:
            return self.refusal(files, f"no other value is worth trying: it is {default}")
        pattern = files.pattern if files else None
        return Parameter(
            name=f"{pattern}:{self.name}" if pattern else self.name,
            setting=self.name,
            pattern=pattern,
            values=kept,
            ordered=ordered,
            default=default,
            reason=reason,
            source=self.source,
        )

    def refusal(self, files: Files | None, reason: str) -> Refusal:
        """Why it is not tried."""
        return Refusal(setting=self.name, pattern=files.pattern if files else None, reason=reason)


def positive(text: str | None) -> int | None:
    """The number, if it is a positive one: what a user or an MPI has for a hint may be anything."""
    return int(text) if text and text.strip().isdecimal() and int(text) > 0 else None


def doubled(first: int, last: int, factor: int = 2) -> list[int]:
    """first, 2 first, 4 first ... up to last."""
    values = []
    while first <= last:
        values.append(first)
        first *= factor
    return values


def powers_near(number: float) -> int:
    """The power of two nearest to it, by ratio."""
    below = 1 << max(0, int(number).bit_length() - 1)
    return below if number * number <= below * below * 2 else 2 * below
