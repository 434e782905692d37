"""What a launch line says: which launcher, how many ranks, which program."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

from forebay.tune.job_script.shell import Command

#: Launcher -> how it spells the number of ranks.
_RANKS = {
    "mpiexec": ("-n", "-np", "--np", "--n"),
    "mpirun": ("-n", "-np", "--np", "--n"),
    "srun": ("-n", "--ntasks"),
    "jsrun": ("-p", "--np"),
    "aprun": ("-n", "--pes"),
    "flux run": ("-n", "--ntasks"),
}
#: jsrun: resource sets, and tasks in each of them.
_SETS = (("-n", "--nrs"), ("-a", "--tasks_per_rs"))
#: Options that take two words, and those of one dash and letter that take none.
_TWO_VALUES = frozenset(("-genv", "-env", "--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmixmca"))
_FLAGS = {
    "srun": "-E -H -O -Q -X -Z -j -k -s -u -v -l -V -K -I",
    "jsrun": "-i -V",
    "aprun": "-b -C -q -ss -B -h",
    "flux run": "-x -u -v -l",
    "mpiexec": "-v -V -q -l -h -s",
    "mpirun": "-v -V -q -l -h -s",
}
#: Long options that take the next word, where they are not written with `=`.
_LONG_WITH_VALUE = re.compile(
    r"--?(np?|ntasks.*|nodes|pes|host|hosts|hostfile|machinefile|map-by|bind-to|rank-by|wdir?|chdir|ppn|f|x"
    r"|cpus-per-task|cores.*|gpus.*|mpi|nrs|np|\w+_per_\w+|bind|launch_distribution|cc|time.*|output|error|input"
    r"|distribution|export|account|partition|exclude|nodelist|mem|genvlist|envlist|prefix|npernode|tag|setenv)"
)


#: With these only some of the variables, or none, come to the ranks.
_WITHHELD = re.compile(r"--?g?env(?:none|list)|--env=-\*|--env-remove=\*")


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Where a script starts ranks. None: it is not written there as such."""

    line: int  # of its statement, from 1
    launcher: str
    ranks: int | None = None
    program: str | None = None
    options: tuple[str, ...] = ()  # of the launcher, with their values


def launch_of(command: Command, line: int) -> Launch | None:
    """None if the command is none of the launchers that `forebay run` knows."""
    words = command.words
    if not words:
        return None
    launcher, rest = PurePosixPath(words[0]).name, words[1:]
    if launcher == "flux" and rest[:1] == ["run"]:
        launcher, rest = "flux run", rest[1:]
    if launcher not in _RANKS:
        return None
    options, program = _divided(launcher, rest)
    ranks = _ranks(launcher, options, rest)
    return Launch(line=line, launcher=launcher, ranks=ranks, program=program, options=tuple(options))


def withheld_by(launch: Launch, exported: str) -> str | None:
    """What keeps variables from the ranks; None: they get all. `exported`: SLURM_EXPORT_ENV."""
    if launch.launcher != "srun":
        return next((word for word in launch.options if _WITHHELD.fullmatch(word)), None)
    what = f"SLURM_EXPORT_ENV={exported}"
    for word, following in zip(launch.options, [*launch.options[1:], ""], strict=False):
        if word == "--export" or word.startswith("--export="):
            exported = following if word == "--export" else word.partition("=")[2]
            what = f"--export={exported}"
    return None if "ALL" in exported.upper().split(",") else what


def _divided(launcher: str, words: list[str]) -> tuple[list[str], str | None]:
    """The options with their values, and the program. A variable that is the program hides it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 + _values(launcher, words[at])
    program = words[at] if at < len(words) and "$" not in words[at] else None
    return words[:at], program


def _values(launcher: str, option: str) -> int:
    if option in _TWO_VALUES:
        return 2
    if "=" in option or option in _FLAGS[launcher].split():
        return 0
    return int(len(option) == 2 or _LONG_WITH_VALUE.fullmatch(option) is not None)


def _ranks(launcher: str, options: list[str], words: list[str]) -> int | None:
    if ":" in words:  # several programs, each with ranks of its own
        return None
    ranks = _count(options, _RANKS[launcher])
    if ranks is None and launcher == "jsrun":
        sets, tasks = (_count(options, names) for names in _SETS)
        return sets * (tasks or 1) if sets else None
    return ranks


def _count(options: list[str], names: tuple[str, ...]) -> int | None:
    for at, word in enumerate(options):
        for name in names:
            value = options[at + 1] if word == name and at + 1 < len(options) else ""
            attached = re.fullmatch(rf"{name}=?(\d+)", word)
            if attached or value.isdigit():
                return int(attached[1] if attached else value)
    return None
