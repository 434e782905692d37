"""A POSIX directory tree in memory: what the operations of tree_agent.py must answer.

It has no permissions beyond their numbers, and a symbolic link leads nowhere: whoever follows one gets ENOENT.
"""

import dataclasses
import itertools

from support.tree_agent import runs


class Refused(Exception):
    """The name of an errno."""


@dataclasses.dataclass(eq=False, kw_only=True)
class Times:
    """How often the two times of an inode were changed."""

    modified: int = 0
    changed: int = 0
    #: How often the system was free to change them.
    unclear: int = 0

    def modify(self) -> None:
        self.modified += 1
        self.changed += 1


@dataclasses.dataclass(eq=False)
class File(Times):
    mode: int = 0o644
    text: str = ""
    links: int = 1

    def write(self, offset: int, text: list) -> int:
        character, count = text
        if count > 0:
            old = self.text.ljust(offset, "\0")
            self.text = old[:offset] + character * count + old[offset + count :]
            self.modify()
        return count

    def truncate(self, size: int) -> None:
        if size == len(self.text):
            self.unclear += 1
            return
        self.text = self.text[:size].ljust(size, "\0")
        self.modify()


@dataclasses.dataclass(eq=False)
class Link(Times):
    target: str
    links: int = 1


@dataclasses.dataclass(eq=False)
class Directory(Times):
    mode: int = 0o755
    entries: dict[str, "File | Link | Directory"] = dataclasses.field(default_factory=dict)

    def add(self, name: str, inode: "File | Link | Directory") -> None:
        self.entries[name] = inode
        self.modify()

    def remove(self, name: str) -> None:
        del self.entries[name]
        self.modify()


Inode = File | Link | Directory


class Model:
    def __init__(self):
        self.root = Directory()
        self.handles: dict[str, tuple[File, str]] = {}

    def answer(self, name: str, *arguments) -> list:
        try:
            return ["ok", getattr(self, name)(*arguments)]
        except Refused as refused:
            return ["error", str(refused)]

    # Names

    def parent(self, path: str) -> tuple[Directory, str]:
        """The directory that a path's last name is in."""
        *folders, name = path.split("/")
        here: Inode = self.root
        for folder in folders:
            here = directory(here).entries.get(folder) or refuse("ENOENT")
        return directory(here), name

    def find(self, path: str) -> Inode:
        if path == ".":
            return self.root
        folder, name = self.parent(path)
        return folder.entries.get(name) or refuse("ENOENT")

    def new(self, path: str) -> tuple[Directory, str]:
        folder, name = self.parent(path)
        return (folder, name) if name not in folder.entries else refuse("EEXIST")

    def open_file(self, path: str) -> File:
        """Without following a link."""
        found = self.find(path)
        if isinstance(found, Directory):
            refuse("EISDIR")
        return found if isinstance(found, File) else refuse("ELOOP")

    def followed(self, path: str) -> File | Directory:
        found = self.find(path)
        return refuse("ENOENT") if isinstance(found, Link) else found

    def paths(self) -> list[str]:
        return [path for path, _ in walk(self.root, "")]

    def is_below(self, inode: Inode, top: Inode) -> bool:
        return inode is top or any(inode is found for _, found in walk(top, ""))

    # Operations on names

    def mkdir(self, path):
        folder, name = self.new(path)
        folder.add(name, Directory())

    def rmdir(self, path):
        folder, name = self.parent(path)
        found = self.find(path)
        if not isinstance(found, Directory):
            refuse("ENOTDIR")
        if found.entries:
            refuse("ENOTEMPTY")
        folder.remove(name)

    def unlink(self, path):
        folder, name = self.parent(path)
        found = self.find(path)
        if isinstance(found, Directory):
            refuse("EISDIR")
        found.links -= 1
        found.changed += 1
        folder.remove(name)

    def rename(self, source, path):
        from_folder, from_name = self.parent(source)
        folder, name = self.parent(path)
        moved, old = self.find(source), folder.entries.get(name)
        if self.is_below(folder, moved):
            refuse("EINVAL")
        if old is not None and old is not moved and self.is_below(from_folder, old):
            refuse("ENOTEMPTY")
        if old is moved:
            return
        if old is not None:
            self.make_way(moved, old)
        from_folder.remove(from_name)
        folder.add(name, moved)
        moved.changed += 1

    def make_way(self, moved, old):
        """For `moved` at the name of `old`."""
        if isinstance(moved, Directory):
            if not isinstance(old, Directory):
                refuse("ENOTDIR")
            if old.entries:
                refuse("ENOTEMPTY")
        elif isinstance(old, Directory):
            refuse("EISDIR")
        else:
            old.links -= 1
            old.changed += 1

    def link(self, source, path):
        found = self.find(source)
        folder, name = self.new(path)
        if isinstance(found, Directory):
            refuse("EPERM")
        found.links += 1
        found.changed += 1
        folder.add(name, found)

    def symlink(self, target, path):
        folder, name = self.new(path)
        folder.add(name, Link(target))

    def readlink(self, path):
        found = self.find(path)
        return found.target if isinstance(found, Link) else refuse("EINVAL")

    def chmod(self, path, mode):
        found = self.followed(path)
        found.mode = mode
        found.changed += 1

    def list(self, path):
        return sorted(directory(self.find(path)).entries)

    def describe(self, path):
        return described(self.find(path))

    def tree(self):
        found = {}
        for path, inode in walk(self.root, ""):
            found[path] = described(inode)
            if isinstance(inode, File):
                found[path].append(runs(inode.text))
        return found

    def inodes(self) -> dict[str, Inode]:
        """Each by its path, also the top."""
        return {".": self.root} | dict(walk(self.root, ""))

    # Operations on contents

    def read(self, path):
        return runs(self.open_file(path).text)

    def put(self, path, text):
        folder, name = self.parent(path)
        if name in folder.entries:
            self.open_file(path).truncate(0)
        else:
            folder.add(name, File())
        return self.open_file(path).write(0, text)

    def create_new(self, path):
        folder, name = self.new(path)
        folder.add(name, File())

    def write(self, path, offset, text):
        return self.open_file(path).write(offset, text)

    def append(self, path, text):
        file = self.open_file(path)
        return file.write(len(file.text), text)

    def truncate(self, path, size):
        found = self.followed(path)
        if isinstance(found, Directory):
            refuse("EISDIR")
        found.truncate(size)

    def open(self, handle, path, flags):
        self.handles[handle] = (self.open_file(path), flags)

    def handle_read(self, handle):
        return runs(self.handles[handle][0].text)

    def handle_write(self, handle, offset, text):
        return self.handles[handle][0].write(offset, text)

    def handle_append(self, handle, text):
        file = self.handles[handle][0]
        return file.write(len(file.text), text)

    def handle_truncate(self, handle, size):
        self.handles[handle][0].truncate(size)

    def handle_describe(self, handle):
        file = self.handles[handle][0]
        return [file.mode, len(file.text), file.links]

    def close(self, handle):
        del self.handles[handle]


def refuse(name: str):
    raise Refused(name)


def directory(inode: Inode) -> Directory:
    """A link is followed, to nowhere."""
    if isinstance(inode, Link):
        refuse("ENOENT")
    return inode if isinstance(inode, Directory) else refuse("ENOTDIR")


def described(inode: Inode) -> list:
    if isinstance(inode, Directory):
        return ["directory", inode.mode]
    if isinstance(inode, Link):
        return ["link", inode.target, inode.links]
    return ["file", inode.mode, len(inode.text), inode.links]


def walk(inode: Inode, path: str):
    """(path, inode) of all below."""
    if isinstance(inode, Directory):
        for name, found in inode.entries.items():
            place = f"{path}/{name}" if path else name
            yield from itertools.chain([(place, found)], walk(found, place))
