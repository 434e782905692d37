"""Operations on a directory tree, one JSON line in, one out: `python tree_agent.py DIRECTORY` on a node.

A line is [operation, argument, ...]; the answer is ["ok", value] or ["error", "ENOENT"]. Paths are relative to the
directory, and what to write is [character, count]. tree_model.py says what a directory tree must answer.
"""

import errno
import itertools
import json
import os
import stat
import sys

READ_BYTES = 1 << 20
handles = {}


def runs(text):
    """Contents, short to read: [[character, count], ...]."""
    return [[character, len(list(group))] for character, group in itertools.groupby(text)]


def data(text):
    character, count = text
    return (character * count).encode()


def opened(path, flags, work):
    descriptor = os.open(path, flags | os.O_NOFOLLOW, 0o644)
    try:
        return work(descriptor)
    finally:
        os.close(descriptor)


def contents(descriptor):
    return runs(os.pread(descriptor, READ_BYTES, 0).decode())


def read(path):
    return opened(path, os.O_RDONLY, contents)


def put(path, text):
    return opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, lambda file: os.write(file, data(text)))


def create_new(path):
    opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, lambda file: None)


def write(path, offset, text):
    return opened(path, os.O_WRONLY, lambda file: os.pwrite(file, data(text), offset))


def append(path, text):
    return opened(path, os.O_WRONLY | os.O_APPEND, lambda file: os.write(file, data(text)))


def described(path):
    """[kind, mode, size, links]; nothing that file systems may count as they like."""
    found = os.lstat(path)
    if stat.S_ISDIR(found.st_mode):
        return ["directory", stat.S_IMODE(found.st_mode)]
    if stat.S_ISLNK(found.st_mode):
        return ["link", os.readlink(path), found.st_nlink]
    return ["file", stat.S_IMODE(found.st_mode), found.st_size, found.st_nlink]


def tree(path="."):
    """Everything below, with contents."""
    found = {}
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            place = os.path.relpath(os.path.join(folder, name), path)
            found[place] = described(os.path.join(path, place))
            if found[place][0] == "file":
                found[place].append(read(os.path.join(path, place)))
    return found


def status(paths):
    """[links, time of modification, time of change] of each, in nanoseconds. Lists no directory: a client that does asks
    a server for its times."""
    found = [os.lstat(path) for path in paths]
    return [[one.st_nlink, one.st_mtime_ns, one.st_ctime_ns] for one in found]


def open_handle(handle, path, flags):
    handles[handle] = os.open(path, os.O_RDWR | os.O_NOFOLLOW | (os.O_APPEND if flags == "append" else 0))


def handle_describe(handle):
    found = os.fstat(handles[handle])
    return [stat.S_IMODE(found.st_mode), found.st_size, found.st_nlink]


OPERATIONS = {
    "mkdir": lambda path: os.mkdir(path, 0o755),
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "rename": os.rename,
    "link": lambda source, path: os.link(source, path, follow_symlinks=False),
    "symlink": os.symlink,
    "readlink": os.readlink,
    "chmod": os.chmod,
    "list": lambda path: sorted(os.listdir(path)),
    "describe": described,
    "read": read,
    "put": put,
    "create_new": create_new,
    "write": write,
    "append": append,
    "truncate": os.truncate,
    "open": open_handle,
    "handle_read": lambda handle: contents(handles[handle]),
    "handle_write": lambda handle, offset, text: os.pwrite(handles[handle], data(text), offset),
    "handle_append": lambda handle, text: os.write(handles[handle], data(text)),
    "handle_truncate": lambda handle, size: os.ftruncate(handles[handle], size),
    "handle_describe": handle_describe,
    "close": lambda handle: os.close(handles.pop(handle)),
    "tree": tree,
    "status": status,
}


def answer(name, *arguments):
    try:
        return ["ok", OPERATIONS[name](*arguments)]
    except OSError as error:
        return ["error", errno.errorcode[error.errno]]


def main():
    os.umask(0o022)
    os.chdir(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(answer(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
