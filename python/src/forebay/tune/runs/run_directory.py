"""The directory of runs: a copy of the script's own, made before each run what it was at first."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from forebay.atomic_file import write_atomically
from forebay.quantities import size
from forebay.tune.errors import TuneError
from forebay.tune.runs.tree_copy import (
    Entries,
    bytes_of,
    copy_entry,
    entries,
    finish_directory,
    groups_of,
    is_directory,
    links_out,
    remove,
)

#: Larger directories are copied only if the user says so.
COPIED_BYTES_MAX = 4 << 30
#: A directory of more files and directories is nobody's job's.
ENTRIES_MAX = 100_000
#: How many of the largest things are named where that is not done.
NAMED_MAX = 3
#: What was copied first, in the study's directory: path, size and time of modification.
INPUTS = "inputs.json"
_Signature = tuple[int, int]
_UNFINISHED, _OLD = ".work-unfinished-", ".work-old-"


class _State(msgspec.Struct, frozen=True):
    """A file as we left it. Whatever is done to it, but for reading, changes its ctime."""

    mode: int
    inode: int
    bytes: int
    changed_ns: int


class RunDirectory:
    """Copies `job_directory` to `work` in `study_directory`.

    Studies are left out, and what a pattern of `exclude` matches by its name or its path from there; so are
    pipes, sockets and devices.
    """

    def __init__(
        self,
        job_directory: Path,
        study_directory: Path,
        exclude: Sequence[str] = (),
        *,
        bytes_max: int = COPIED_BYTES_MAX,
    ):
        self.source = job_directory.resolve()
        self._names = _names(job_directory)
        self.study = study_directory.resolve()
        self.directory = self.study / "work"
        self._exclude = [pattern.rstrip("/") for pattern in exclude]
        self._bytes_max = bytes_max
        self._originals: Entries = {}
        self._states: dict[str, _State] = {}

    @property
    def map_options(self) -> list[str]:
        """Options of `forebay run` with which a job sees the copy under the name of its own directory.

        It is started there; a study in that directory is hidden from it, so its record must lie elsewhere.
        """
        return ["--map", f"{self.source}={self.directory}"]

    def pfs_directory(self, *, is_mapped: bool) -> Path:
        """Where the job's allocation is without a burst buffer: no run resets it, and no map hides it."""
        is_hidden = is_mapped and self.study.is_relative_to(self.source)
        return self.source.parent if is_hidden else self.study

    def is_named_in(self, text: str) -> bool:
        """Does the script speak of its directory by name, or of what is above it? Then it needs the map."""
        above = re.search(r"(?:^|[\s=:\"'(])\.\.(?:/|\s|$)", text, re.MULTILINE)
        return above is not None or any(name in text for name in self._names)

    def warnings(self) -> list[str]:
        """What the user should know of the copy."""
        return [
            f"{name} leads to {os.path.realpath(self.source / name)}, outside of the job's directory: "
            f"runs use a copy of it below {self.study} (--study DIR: on another file system)"
            for name in links_out(self.source, self._originals)
        ]

    def prepare(self, *, is_begun: bool = False) -> None:
        """Makes the copy. What an earlier tuner left goes, as far as no process of its still writes there.

        A study that is begun gets the entries that it had. Raises TuneError if one of them was changed, the
        copy is too large, or something cannot be read; then nothing is left.
        """
        with _as_tune_error("is not copied", "leave it out with --exclude if the job does not need it"):
            found = entries(self.source, self._is_excluded)
            self._originals = dict(itertools.islice(found, ENTRIES_MAX + 1))
            self._leave_out_own_output()
            if is_begun:
                self._keep_inputs()
            self._must_fit()
            self.study.mkdir(parents=True, exist_ok=True)
            self._retire_old_copy()
            unfinished = self.study / f"{_UNFINISHED}{os.getpid()}"
            try:
                self._copy(self._originals, unfinished)
                unfinished.rename(self.directory)
                signatures = {name: _signature(found) for name, found in self._originals.items()}
                write_atomically(self.study / INPUTS, msgspec.json.encode(signatures))
            except BaseException:
                remove(unfinished)
                raise
        self._states = self._states_of(self._originals)

    def reset(self) -> None:
        """Removes what is new, and restores what was changed or removed, from the original.

        Raises TuneError if an original is no longer what was copied.
        """
        with _as_tune_error(
            "cannot be made what it was before the run", "see that the job leaves nothing behind it"
        ):
            for name, found in self._originals.items():
                if is_directory(found):
                    self._open_directory(self.directory / name)
            self._remove_new()
            changed = self._changed()
            for name in changed:
                remove(self.directory / name)
            self._must_be_as_copied(changed)
            self._copy(changed, self.directory)
            self._states.update(self._states_of(changed))

    def _leave_out_own_output(self) -> None:
        """The file that a scheduler keeps of what the tuner prints grows."""
        own = set()
        for descriptor in (1, 2):
            with suppress(OSError):
                found = os.fstat(descriptor)
                own.add((found.st_dev, found.st_ino))
        self._originals = {
            name: one for name, one in self._originals.items() if (one.st_dev, one.st_ino) not in own
        }

    def _keep_inputs(self) -> None:
        """Leaves out what is new since the study began. TuneError if something was changed or removed."""
        try:
            known = msgspec.json.decode((self.study / INPUTS).read_bytes(), type=dict[str, _Signature])
        except (FileNotFoundError, msgspec.MsgspecError):  # a study of an earlier version
            return
        for name, was in known.items():
            if name not in self._originals or _signature(self._originals[name]) != was:
                raise TuneError(
                    f"{self.source / name} was changed or removed since the study began, and runs need it",
                    "--study DIR begins a new study",
                )
        self._originals = {name: self._originals[name] for name in known}

    def _is_excluded(self, name: str) -> bool:
        path = self.source / name
        if (path.name == self.study.name and path.resolve() == self.study) or (
            name.endswith(".tune") and path.is_dir()
        ):
            return True
        return any(fnmatch.fnmatch(it, one) for it in (name, path.name) for one in self._exclude)

    def _must_fit(self) -> None:
        total = bytes_of(self._originals)
        if len(self._originals) > ENTRIES_MAX:
            raise TuneError(
                f"{self.source} has more than {ENTRIES_MAX} files, too many to copy for runs",
                "give the script a directory of its own, or leave out what the job does not need: --exclude",
            )
        if total <= self._bytes_max:
            return
        parts: dict[str, Entries] = {}
        for name, found in self._originals.items():
            parts.setdefault(name.split("/", 1)[0], {})[name] = found
        sizes = {part: bytes_of(found) for part, found in parts.items()}
        largest = sorted(sizes, key=lambda part: -sizes[part])[:NAMED_MAX]
        named = ", ".join(f"{part}{self._led(part)} {size(sizes[part])}" for part in largest)
        raise TuneError(
            f"{self.source} has {size(total)}; at most {size(self._bytes_max)} are copied for runs: {named}",
            f"leave out what the job does not need (--exclude {largest[0]}); "
            "or give the script a directory of its own",
        )

    def _led(self, name: str) -> str:
        path = self.source / name
        return f" (a link to {path.resolve()})" if path.is_symlink() else ""

    def _retire_old_copy(self) -> None:
        """A process that an earlier tuner left may write on in the old directory, but not in the new one."""
        if self.directory.exists():
            self.directory.rename(self.study / f"{_OLD}{os.getpid()}-{os.stat(self.directory).st_ino}")
        for left in [*self.study.glob(f"{_OLD}*"), *self.study.glob(f"{_UNFINISHED}*")]:
            try:
                remove(left)
            except OSError:  # it is still written to; the next tuner finds it
                continue

    def _copy(self, chosen: Entries, target: Path) -> None:
        """Copies these, and gives all directories their modes and times."""
        groups = groups_of(self._originals)
        copied: set[str] = set()
        for name, found in chosen.items():
            linked = next((other for other in groups.get(name, ()) if other in copied), None)
            copy_entry(name, found, self.source, target, linked)
            copied.add(name)
        for name, found in reversed(self._originals.items()):
            if is_directory(found):
                finish_directory(target / name, found)

    def _states_of(self, names: Entries) -> dict[str, _State]:
        return {name: _state(self.directory / name) for name in names}

    def _open_directory(self, path: Path) -> None:
        """A job may have closed it, put something else in its place, or removed it."""
        if path.is_symlink() or not path.is_dir():
            remove(path)
            path.mkdir(mode=0o700)
        elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            path.chmod(0o700)

    def _remove_new(self) -> None:
        for directory, below, names in os.walk(self.directory):
            for name in [*below, *names]:
                path = Path(directory, name)
                if os.path.relpath(path, self.directory) not in self._originals:
                    remove(path)
            below[:] = [name for name in below if os.path.isdir(os.path.join(directory, name))]

    def _changed(self) -> Entries:
        """With all names of a file of several names, which are restored together."""
        groups = groups_of(self._originals)
        names = set()
        for name, found in self._originals.items():
            if is_directory(found):
                continue
            path = self.directory / name
            if not os.path.lexists(path) or _state(path) != self._states[name]:
                names.update(groups.get(name, [name]))
        return {name: found for name, found in self._originals.items() if name in names}

    def _must_be_as_copied(self, changed: Entries) -> None:
        for name, then in changed.items():
            now = os.stat(self.source / name, follow_symlinks=not stat.S_ISLNK(then.st_mode))
            if (now.st_size, now.st_mtime_ns, now.st_ino) != (then.st_size, then.st_mtime_ns, then.st_ino):
                raise TuneError(
                    f"{self.source / name} was changed since the tuning began, and runs need it as it was",
                    "begin a new study",
                )


def _names(directory: Path) -> set[str]:
    """What a script may call the directory: with links on the way or without, or by its home directory."""
    paths = {directory.absolute(), directory.resolve()}
    names = {str(path) for path in paths}
    for home in _homes():
        below = [path.relative_to(home) for path in paths if home in path.parents]
        names |= {f"{name}/{path}" for path in below for name in ("~", "$HOME", "${HOME}")}
    return names


def _homes() -> set[Path]:
    """Names of the home directory; none for a user without one, as in a container."""
    try:
        return {Path.home(), Path.home().resolve()}
    except RuntimeError:
        return set()


def _signature(found: os.stat_result) -> _Signature:
    """A directory's time changes with each file in it."""
    return (0, 0) if is_directory(found) else (found.st_size, found.st_mtime_ns)


def _state(path: Path) -> _State:
    found = os.lstat(path)
    return _State(found.st_mode, found.st_ino, found.st_size, found.st_ctime_ns)


@contextmanager
def _as_tune_error(what: str, hint: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TuneError(f"{error.filename} {what}: {error.strerror}", hint) from error
