"""What can be set for a job: parameters, refusals and first guesses, from the profile of its default run.

Also the two rules that a search keeps to: `canonical`, so that what acts alike is equal, and `forbidden`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import msgspec

from forebay.advice.file_metrics import FileView, JobView
from forebay.advice.hint_lines import file_pattern
from forebay.advice.thresholds import FILE_SHARE_MIN
from forebay.profiles.model import Profile
from forebay.quantities import count, percent
from forebay.tune.job_script.script import JobScript
from forebay.tune.model import Configuration, Guess, Machine, Parameter, Place, Plan, Refusal, key
from forebay.tune.script_forms import choose, per_file
from forebay.tune.settings import ALL, SettingContext, named
from forebay.tune.settings.job_view import Files, Job, Namespace, head_of, is_created
from forebay.tune.settings.seed_configurations import guesses

#: Patterns of files that are named in a refusal.
NAMED_MAX = 3


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """What a Plan is made of, apart from the strategy and its limits."""

    parameters: tuple[Parameter, ...]
    refusals: tuple[Refusal, ...]
    guesses: tuple[Guess, ...]
    machine: Machine


def build(
    profile: Profile,
    script: JobScript,
    place: Place,
    *,
    layout_may_change: bool,
    stripe_targets: int | None = None,
    namespace: Namespace | None = None,
    head_of: Callable[[str], bytes] = head_of,
) -> Space:
    """The space of one place, from the profile of the default run there.

    `layout_may_change`: can the output be judged although its bytes lie elsewhere in the file?
    `stripe_targets`: how many the file system has, if known (`forebay.profiles.machine.read_machine` tells it
    of a model). `namespace`: that of the job over several nodes, if it has layouts.
    `head_of`: the first bytes of a file by its path, where the job sees other files than we.
    """
    view = JobView(profile, None)
    job = Job(
        profile=profile,
        script=script,
        place=place,
        layout_may_change=layout_may_change,
        stripe_targets=stripe_targets,
        namespace=namespace,
        head_of=head_of,
    )
    patterns = _patterns(view, job)
    created = [one.file for one in view.files if is_created(one.file)]
    offered = [one for setting in ALL if (one := setting.for_job(job, patterns, created)) is not None]
    offered += [one for files in patterns for setting in ALL if (one := setting.for_files(files)) is not None]
    parameters = tuple(one for one in offered if isinstance(one, Parameter))
    refusals = [one for one in offered if isinstance(one, Refusal)]
    machine = msgspec.structs.replace(
        _machine(view, script, patterns, stripe_targets),
        output_directories=_output_directories(profile, script, [file.path for file in created]),
    )
    return Space(
        parameters=parameters,
        refusals=(*_left_out(view), *_merged_refusals(refusals)),
        guesses=_usable_guesses(guesses(parameters, patterns), parameters, machine),
        machine=machine,
    )


def canonical(configuration: Configuration, plan: Plan) -> Configuration:
    """The configuration without what cannot act: values of the default run, and what others switch off.

    Two that are equal in effect, as far as the rules of the settings know, become equal.
    """
    parameters = {parameter.name: parameter for parameter in plan.parameters}
    kept = {
        name: value
        for name, value in configuration.items()
        if name not in parameters or value != parameters[name].default
    }
    while idle := next(
        (name for name in sorted(kept) if _is_idle(name, kept, parameters, plan.machine)), None
    ):
        del kept[idle]
    return dict(key(kept))


def forbidden(configuration: Configuration, plan: Plan) -> str | None:
    """Why a configuration must not be run: the first reason; None: it may."""
    parameters = {parameter.name: parameter for parameter in plan.parameters}
    for name, value in sorted(configuration.items()):
        if name not in parameters:
            return f"{name} is no parameter of this plan"
        context = _setting_context(name, configuration, parameters, plan.machine)
        if reason := named(parameters[name].setting).conflict(value, context):
            return reason
    return None


def _setting_context(
    name: str, configuration: Configuration, parameters: dict[str, Parameter], machine: Machine
) -> SettingContext:
    pattern = parameters[name].pattern
    return SettingContext(
        parameters=parameters, configuration=configuration, machine=machine, pattern=pattern
    )


def _is_idle(name: str, kept: Configuration, parameters: dict[str, Parameter], machine: Machine) -> bool:
    if name not in parameters:
        return False
    context = _setting_context(name, kept, parameters, machine)
    return named(parameters[name].setting).is_idle(kept[name], context)


def _patterns(view: JobView, job: Job) -> list[Files]:
    """MPI-IO files worth a look by pattern, the longest first; one for all if the MPI has no more."""
    is_per_file = per_file(choose(job.profile))
    groups: dict[str, list[FileView]] = {}
    for one in view.files:
        if one.mpiio is not None:
            groups.setdefault(file_pattern(one.file.path) if is_per_file else "*", []).append(one)
    patterns = [Files(pattern, views, job) for pattern, views in groups.items()]
    return sorted(patterns, key=lambda files: -files.seconds)


def _machine(view: JobView, script: JobScript, patterns: list[Files], stripe_targets: int | None) -> Machine:
    mpi = next((program.mpi for program in view.profile.programs if program.mpi), None)
    return Machine(
        ranks=max((files.main.program.ranks or 1 for files in patterns), default=script.ranks),
        nodes=max((files.hosts for files in patterns), default=script.nodes),
        mpi=mpi,
        lustre_driver=any(files.has_lustre_driver for files in patterns),
        stripe_targets=stripe_targets,
    )


def _output_directories(profile: Profile, script: JobScript, created: list[str]) -> tuple[str, ...]:
    """What is there before the run inherits nothing from a layout that the job's directory gets then."""
    base = PurePath(profile.job.directory or script.path.parent)
    below = {
        PurePath(path).parent.relative_to(base) for path in created if PurePath(path).is_relative_to(base)
    }
    return tuple(sorted(str(one) for one in below if one.parts and (script.path.parent / one).is_dir()))


def _left_out(view: JobView) -> list[Refusal]:
    """Files that no hint reaches, and those that take too little time."""
    seen = {id(one.file) for one in view.files}
    refusals = []
    others = [one.file.path for one in view.files if one.mpiio is None]
    for pattern, number in _largest_groups(others):
        reason = f"{number} opened without MPI-IO: no hint reaches it"
        refusals.append(Refusal(setting="hints of MPI-IO", pattern=pattern, reason=reason))
    files = [file for program in view.profile.programs for file in program.files]
    looked_at = {file_pattern(one.file.path) for one in view.files if one.mpiio is not None}
    light = [file.path for file in files if id(file) not in seen and "MPI-IO" in file.layers]
    light = [path for path in light if file_pattern(path) not in looked_at]
    if light:
        names = ", ".join(pattern for pattern, _ in _largest_groups(light)[:NAMED_MAX])
        reason = f"{count(len(light))} file(s) ({names}) take under {percent(FILE_SHARE_MIN)} of the run each"
        refusals.append(Refusal(setting="all", pattern=None, reason=reason))
    return refusals


def _largest_groups(paths: list[str]) -> list[tuple[str, str]]:
    """Patterns of the paths, and how many files each has, in words."""
    patterns = [file_pattern(path) for path in paths]
    return [(one, f"{count(patterns.count(one))} file(s)") for one in dict.fromkeys(patterns)]


def _merged_refusals(refusals: list[Refusal]) -> list[Refusal]:
    """Settings with one reason for their refusal are listed together."""
    groups: dict[tuple[str | None, str], list[str]] = {}
    for one in refusals:
        groups.setdefault((one.pattern, one.reason), []).append(one.setting)
    return [
        Refusal(setting=", ".join(settings), pattern=pattern, reason=reason)
        for (pattern, reason), settings in groups.items()
    ]


def _usable_guesses(
    found: list[Guess], parameters: tuple[Parameter, ...], machine: Machine
) -> tuple[Guess, ...]:
    """Guesses that differ in effect, and may be run."""
    plan = Plan(
        parameters=parameters, refusals=(), guesses=(), machine=machine, strategy="", seed=0, runs_max=0
    )
    kept: dict[tuple[tuple[str, str], ...], Guess] = {}
    for guess in found:
        configuration = canonical(guess.configuration, plan)
        if configuration and forbidden(configuration, plan) is None:
            kept.setdefault(key(configuration), Guess(configuration=configuration, reason=guess.reason))
    return tuple(kept.values())
