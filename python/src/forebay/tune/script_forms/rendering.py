"""Which form says which settings, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from forebay.tune.errors import TuneError
from forebay.tune.job_script.script import JobScript
from forebay.tune.model import Configuration, Parameter, Plan
from forebay.tune.script_forms import cray, forwarding, jobdw, library, lustre, pnetcdf, romio_file
from forebay.tune.script_forms.job_lines import Change, Hints, Job, Line

_FORMS = {"cray": cray.lines, "library": library.lines, "romio-file": romio_file.lines}

Chosen = list[tuple[Parameter, str]]


class Block(msgspec.Struct, frozen=True):
    """What one configuration makes of the script."""

    lines: list[Line]
    changes: list[Change]


def block(
    script: JobScript, plan: Plan, configuration: Configuration, form: str, *, undoing: bool = False
) -> Block:
    """`undoing`: what an earlier run may have left in the directory of runs is set to the default.

    Raises TuneError if the form cannot say it.
    """
    job = Job(script=script, machine=plan.machine)
    chosen = _parameters(plan, configuration)
    striping = _pick(chosen, lambda setting: setting.startswith("lfs_"))
    alignment = _pick(chosen, lambda setting: setting.startswith("nc_"))
    of_directive = _pick(chosen, lambda setting: setting.startswith("dw_"))
    others = (*striping, *alignment, *of_directive)
    lines = _hint_lines(job, [pair for pair in chosen if pair not in others], form)
    if alignment:
        lines += pnetcdf.lines(job, _settings(alignment), _names(alignment))
    lines += forwarding.lines(job, [line.variable for line in lines if line.variable])
    changes = jobdw.changes(job, _settings(of_directive), _names(of_directive))
    unset = [
        one for one in plan.parameters if one.setting.startswith("lfs_") and one.name not in configuration
    ]
    defaults = [(one, one.default or "0") for one in unset] if undoing else []  # 0: the file system's
    for directory in dict.fromkeys(one.pattern for one, _ in [*striping, *defaults]):
        named = _in(directory, striping)
        lines += lustre.lines(job, directory, _settings([*_in(directory, defaults), *named]), _names(named))
        changes += lustre.changes(job, directory, _settings(named), _names(named)) if named else []
    return Block(lines, changes)


def _in(directory: str | None, striping: Chosen) -> Chosen:
    return [(one, value) for one, value in striping if one.pattern == directory]


def _settings(chosen: Chosen) -> dict[str, str]:
    return {one.setting: value for one, value in chosen}


def _hint_lines(job: Job, chosen: Chosen, form: str) -> list[Line]:
    """HDF5's hints are libforebay_mpi's own, whatever brings the MPI its hints."""
    of_hdf5 = _pick(chosen, lambda setting: setting.startswith("hdf5_"))
    of_mpi = [pair for pair in chosen if pair not in of_hdf5]
    if form == "romio-file" and of_hdf5:
        lines = _FORMS["library"](job, _hints(job, of_hdf5, "library"), _names(of_hdf5))
        return [*lines, *(_FORMS[form](job, _hints(job, of_mpi, form), _names(of_mpi)) if of_mpi else [])]
    lines = _FORMS[form](job, _hints(job, chosen, form), _names(chosen)) if chosen else []
    return [*lines, *(library.preload(job) if of_hdf5 and form == "cray" else [])]


def _parameters(plan: Plan, configuration: Configuration) -> Chosen:
    known = {parameter.name: parameter for parameter in plan.parameters}
    for name in configuration:
        if name not in known:
            raise TuneError(f"{name} is set, and is no parameter of this plan", "begin a new study")
    return [(known[name], value) for name, value in configuration.items()]


def _pick(chosen: Chosen, wanted: Callable[[str], bool]) -> Chosen:
    return [(parameter, value) for parameter, value in chosen if wanted(parameter.setting)]


def _names(chosen: Chosen) -> frozenset[str]:
    return frozenset(parameter.name for parameter, _ in chosen)


def _hints(job: Job, chosen: Chosen, form: str) -> Hints:
    """One aggregator a node is ROMIO's limit unless cb_config_list says otherwise; Cray's has none."""
    hints: Hints = {}
    for parameter, value in chosen:
        hints.setdefault(parameter.pattern or "*", {})[parameter.setting] = value
    for own in hints.values():
        if form != "cray" and "cb_nodes" in own:
            per_node = -(-int(own["cb_nodes"]) // max(job.machine.nodes, 1))
            own.setdefault("cb_config_list", f"*:{per_node}")
    return hints
