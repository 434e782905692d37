"""Did a setting do anything? The deterministic counters of a trial against those of the default run.

A parameter counts as without effect only if the counters show it; where they cannot, it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from forebay.profiles.model import File, Layer, Profile
from forebay.tune.model import Configuration, Parameter, Plan
from forebay.tune.settings import named


def without_effect(configuration: Configuration, plan: Plan, default: Profile, trial: Profile) -> list[str]:
    """Names of the parameters of which no counter shows anything, in the order of the configuration."""
    parameters = {parameter.name: parameter for parameter in plan.parameters}
    return [
        name
        for name, value in configuration.items()
        if name in parameters and _has_effect(parameters[name], value, default, trial) is False
    ]


def _has_effect(parameter: Parameter, value: str, default: Profile, trial: Profile) -> bool | None:
    """None: nothing tells."""
    before, after = _files(default, parameter), _files(trial, parameter)
    if not before or not after:
        return None
    setting = named(parameter.setting)
    seen = setting.is_seen(value, before, after)
    if seen is not None:
        return seen
    shows = setting.is_in_calls and not setting.may_be_default_behaviour(value, before)
    return False if _is_denied(parameter, after) or (shows and _is_same(before, after)) else None


def _files(profile: Profile, parameter: Parameter) -> list[File]:
    """Of its pattern; for the whole job, those that are written."""
    files = [file for program in profile.programs for file in program.files]
    if parameter.pattern is not None:
        named_so = [file for file in files if fnmatchcase(PurePosixPath(file.path).name, parameter.pattern)]
        return [file for file in named_so if "MPI-IO" in file.layers]
    return [file for file in files if any((layer.write.bytes or 0) > 0 for layer in file.layers.values())]


def _is_denied(parameter: Parameter, trial: Sequence[File]) -> bool:
    """Does the library say of each of the files that the hint was not obeyed?"""
    known = [file.hints for file in trial if file.hints is not None]
    return bool(known) and all(
        any(one.key == parameter.setting for one in hints.without_effect) for hints in known
    )


def _is_same(default: Sequence[File], trial: Sequence[File]) -> bool:
    """Were the same system calls made, by the same ranks? False where not all of it is known."""
    before, after = ([_traits(file) for file in files] for files in (default, trial))
    known = all(trait is not None for traits in (*before, *after) for trait in traits)
    return known and sorted(before) == sorted(after)


def _traits(file: File) -> tuple:
    layer = file.layers.get("POSIX") or file.layers.get("STDIO")
    if layer is None:
        return (None,)
    collective = file.collective
    counted = (
        (collective.aggregators_write, collective.aggregators_read, collective.rmw_calls)
        if collective
        else ()
    )
    writers = tuple(sorted((writer.rank, writer.bytes, writer.calls) for writer in file.writers))
    return (*_moved(layer), *counted, writers, file.stripe_count or 0, file.stripe_bytes or 0)


def _moved(layer: Layer) -> tuple[int | None, ...]:
    ends = (layer.read.end_bytes or 0, layer.write.end_bytes or 0)
    return (layer.read.calls, layer.read.bytes, layer.write.calls, layer.write.bytes, *ends)
