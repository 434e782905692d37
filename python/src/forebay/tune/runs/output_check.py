"""Is what a run wrote right? The program may tell, or a command of the user's, or the default run's bytes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from forebay.profiles.model import Profile
from forebay.tune.errors import TuneError
from forebay.tune.model import Run
from forebay.tune.script_forms.romio_file import SUFFIX

#: In the record of the first default run: what others are compared with.
REFERENCE = "outputs.json"
OUTPUT = "output.txt"
#: A line of the job's output that is longer is no result of a program.
LINE_BYTES_MAX = 1 << 16
#: In a reason, so many files are named.
NAMED_MAX = 3


class Root(msgspec.Struct, frozen=True):
    """A directory in which jobs write."""

    name: str  # before the names of its files: "" for the directory of runs, DW_JOB_STRIPED ...
    seen: str  # as the job sees it
    real: Path  # as it can be read from here


class Outputs(msgspec.Struct):
    """What the default runs wrote, as far as others are compared with it."""

    verified: bool = False  # the program said so itself, and nothing was read
    digests: dict[str, str] = {}  # BLAKE2b of files that MPI programs wrote, by name
    others: list[str] = []  # names of all other files, long numbers as #
    differs: list[str] = []  # that were not the same in all default runs
    runs: int = 0  # default runs


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one run."""

    right: bool
    checked: str | None = None  # how it was found right
    reason: str | None = None  # why it is wrong, or what the user should know


class OutputCheck:
    """Judges the runs of one place. The first default run that it is given is what others are held against.

    `check` runs the user's command in the job's place, and returns its status. `reference` is the record of
    the first default run, where an earlier tuner did that.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        *,
        check: Callable[[], int] | None = None,
        reference: Path | None = None,
        prefix: str = "",
    ):
        self._roots = sorted(roots, key=lambda root: -len(root.seen))
        self._check, self._prefix = check, prefix
        self._path = reference / REFERENCE if reference is not None else None
        self._default = _read(self._path) if self._path is not None else Outputs()

    @property
    def knows_contents(self) -> bool:
        """Can it tell right contents in another layout? The default's bytes cannot."""
        return self._check is not None or self._default.verified

    @property
    def differs(self) -> list[str]:
        """Files that were not the same in all default runs: known from the second one on."""
        return self._default.differs

    def judge(self, run: Run, profile: Profile, directory: Path) -> Finding:
        """Of a run that succeeded; `directory` is its record. Its files must be as it left them."""
        verified = verified_by_program(directory / OUTPUT)
        if verified is False:
            return Finding(right=False, reason="the program says that what it wrote is wrong")
        if self._check is not None:
            return self._checked(run, directory, self._check())
        if verified:
            return self._accepted(run, directory, Outputs(verified=True), "verified by the program")
        if run.configuration and self._default.verified:
            return Finding(
                right=False, reason="the program did not verify what it wrote, as it did by default"
            )
        return self._compared(run, directory, self._written(profile))

    def _checked(self, run: Run, directory: Path, status: int) -> Finding:
        if status != 0:
            return Finding(right=False, reason=f"the check command ended with status {status}")
        return self._accepted(run, directory, Outputs(), "the check command")

    def _accepted(self, run: Run, directory: Path, found: Outputs, how: str) -> Finding:
        if not run.configuration:
            self._learn(found, directory)
        return Finding(right=True, checked=how)

    def _compared(self, run: Run, directory: Path, found: Outputs) -> Finding:
        if not run.configuration:
            return self._default_run(directory, found)
        if self._default.runs == 0:
            raise TuneError("no default run was judged before this one", "begin a new study")
        wrong = _differing(self._default, found)
        if wrong:
            once = " (seen in one default run only)" if self._default.runs == 1 else ""
            return Finding(right=False, reason=f"not as by default{once}: {_named(wrong)}")
        return Finding(right=True, checked=_how(self._default))

    def _default_run(self, directory: Path, found: Outputs) -> Finding:
        differs = _differing(self._default, found) if self._default.runs else []
        self._learn(found, directory, [name.removesuffix(_MISSING).removesuffix(_NEW) for name in differs])
        if not self._default.differs:
            return Finding(right=True, checked=_how(self._default))
        reason = (
            f"output differs from run to run: {_named(self._default.differs)}; give --check (HDF5: h5diff)"
        )
        return Finding(right=True, checked=_how(self._default), reason=reason)

    def _learn(self, found: Outputs, directory: Path, differs: Sequence[str] = ()) -> None:
        if self._default.runs == 0:
            self._default, self._path = found, directory / REFERENCE
        self._default.runs += 1
        self._default.differs = sorted({*self._default.differs, *differs})
        assert self._path is not None
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_bytes(msgspec.json.encode(self._default))
        unfinished.rename(self._path)

    def _written(self, profile: Profile) -> Outputs:
        """Contents of what MPI programs wrote by MPI-IO or system calls; of the rest, that it is there.

        What other programs write, and what is written as streams, are mostly logs, with times in them.
        """
        paths = {self._name(path): path for path in _written_by_mpi(profile) if self._real(path).is_file()}
        digests = {name: digest(self._real(path)) for name, path in sorted(paths.items())}
        others = {name for root in self._roots for name in _names_in(root)} - digests.keys()
        return Outputs(digests=digests, others=sorted({_without_numbers(name) for name in others}))

    def _root(self, path: str) -> Root | None:
        return next((root for root in self._roots if PurePosixPath(path).is_relative_to(root.seen)), None)

    def _name(self, path: str) -> str:
        root = self._root(path)
        return os.path.join(root.name, os.path.relpath(path, root.seen)) if root else path

    def _real(self, path: str) -> Path:
        root = self._root(path)
        return root.real / os.path.relpath(path, root.seen) if root else Path(f"{self._prefix}{path}")


_MISSING, _NEW = " (missing)", " (new)"


def _differing(default: Outputs, found: Outputs) -> list[str]:
    """Names of files that are not the same, or not there; of those that never are, nothing is asked.

    Of a file that only this run has, it counts if an MPI program wrote it.
    """
    contents = [name for name, known in default.digests.items() if found.digests.get(name, known) != known]
    there = {*map(_without_numbers, found.digests), *found.others}
    missing = [name for name in default.digests if name not in found.digests]
    missing += [name for name in default.others if name not in there]
    before = {*map(_without_numbers, default.digests), *default.others}
    new = [name for name in found.digests if _without_numbers(name) not in before]
    differing = [(name, "") for name in contents] + [(name, _MISSING) for name in missing]
    differing += [(name, _NEW) for name in new]
    return sorted(name + what for name, what in differing if name not in default.differs)


def digest(path: Path) -> str:
    """BLAKE2b of the file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, hashlib.blake2b).hexdigest()


def verified_by_program(output: Path) -> bool | None:
    """What lines of JSON in the job's output say: all `"verified": true`; any false; None: neither."""
    said = []
    with open(output, "rb") as lines:
        for line in lines:
            if line.startswith(b"{") and len(line) <= LINE_BYTES_MAX and b'"verified"' in line:
                said.append(_verified(line))
    if False in said:
        return False
    return True if said and all(said) else None


def _verified(line: bytes) -> bool | None:
    try:
        document = msgspec.json.decode(line)
    except msgspec.DecodeError:  # a line of another kind
        return None
    found = document.get("verified") if isinstance(document, dict) else None
    return found if isinstance(found, bool) else None


def _written_by_mpi(profile: Profile) -> Iterable[str]:
    for program in profile.programs:
        for file in program.files if program.uses_mpi else ():
            layers = [layer for name, layer in file.layers.items() if name != "STDIO"]
            if any(layer.write.calls or layer.write.bytes for layer in layers):
                yield file.path


def _names_in(root: Root) -> Iterable[str]:
    for directory, _, names in os.walk(root.real):
        for name in names:
            if not name.endswith(SUFFIX):
                yield os.path.join(root.name, os.path.relpath(os.path.join(directory, name), root.real))


def _without_numbers(name: str) -> str:
    """Ids of jobs and processes, and times, differ from run to run."""
    return re.sub(r"\d{4,}", "#", name)


def _how(default: Outputs) -> str:
    compared = [name for name in default.digests if name not in default.differs]
    if not compared:
        return "its status alone: nothing that an MPI program wrote can be compared"
    return f"the same bytes: {_named(compared)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _read(path: Path) -> Outputs:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Outputs)
    except (OSError, msgspec.DecodeError) as error:
        raise TuneError(
            f"{path}, what the default run wrote, cannot be read: {error}", "begin a new study"
        ) from error
