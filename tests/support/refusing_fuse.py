"""A FUSE file system in memory whose server refuses data only at close(2) and fsync(2), as a server with a quota does.

Usage: python3 refusing_fuse.py DIRECTORY. Ends when the directory is unmounted.
"""

import ctypes
import errno
import os
import struct
import sys
import time

ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
DIRECTORY, FILE = 0o40000, 0o100000
LOOKUP, GETATTR, SETATTR, MKDIR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 1, 3, 4, 9, 14, 15, 16, 17, 18, 20
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, CREATE = 25, 26, 27, 28, 29, 30, 35
UNLINK, RMDIR, RENAME, RENAME2 = 10, 11, 12, 45
WITHOUT_ANSWER = (2, 36, 42)


class Node:
    """A file or directory."""

    def __init__(self, number: int, mode: int):
        self.number, self.mode, self.data, self.entries = number, mode, bytearray(), {}
        self.modified = (int(time.time()), 0)

    def attributes(self) -> bytes:
        (seconds, nanoseconds), size = self.modified, len(self.data)
        times = (seconds,) * 3 + (nanoseconds,) * 3
        return ATTRIBUTES.pack(self.number, size, (size + 511) // 512, *times, self.mode, 1, 0, 0, 0, 4096, 0)

    def entry(self) -> bytes:
        return struct.pack("<QQQQII", self.number, 0, 0, 0, 0, 0) + self.attributes()


class Server:
    """Answers the kernel."""

    def __init__(self):
        self.nodes = {}
        self.new(DIRECTORY | 0o755)

    def new(self, mode: int) -> Node:
        made = Node(len(self.nodes) + 1, mode)
        self.nodes[made.number] = made
        return made

    def answer(self, call: int, number: int, text: bytes) -> bytes:
        """Raises the error of a call that fails."""
        node = self.nodes.get(number)
        if call == INIT:
            return struct.pack("<IIIIHHIIHHII", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0, 0) + bytes(24)
        if call == LOOKUP:
            if text[:-1] not in node.entries:
                raise FileNotFoundError(errno.ENOENT, "")
            return node.entries[text[:-1]].entry()
        if call == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + node.attributes()
        if call == SETATTR:
            wanted, _, _, size, _, _, seconds, _, _, nanoseconds, _, mode = struct.unpack("<IIQQQQQQIIII", text[:72])
            if wanted & 1:
                node.mode = node.mode & 0o170000 | mode & 0o7777
            if wanted & 8:
                node.data = node.data[:size].ljust(size, b"\0")
            if wanted & 32:
                node.modified = (seconds, nanoseconds)
            return struct.pack("<QII", 0, 0, 0) + node.attributes()
        if call == MKDIR:
            made = node.entries[text[8:-1]] = self.new(DIRECTORY | struct.unpack("<I", text[:4])[0] & 0o7777)
            return made.entry()
        if call == CREATE:
            made = node.entries[text[16:-1]] = self.new(FILE | struct.unpack("<II", text[:8])[1] & 0o7777)
            return made.entry() + struct.pack("<QII", made.number, 0, 0)
        if call in (OPEN, OPENDIR):
            return struct.pack("<QII", number, 0, 0)
        if call in (READ, WRITE, READDIR):
            _, at, size = struct.unpack("<QQI", text[:20])
            return self.transfer(call, node, at, size, text)
        if call in (FLUSH, FSYNC):
            if node.data or call == FSYNC:
                node.data = bytearray()
                raise OSError(errno.EDQUOT, "")
            return b""
        if call in (RENAME, RENAME2):
            target, names = struct.unpack("<Q", text[:8])[0], text[8 if call == RENAME else 16 : -1]
            old, new = names.split(b"\0")
            self.nodes[target].entries[new] = node.entries.pop(old)
            return b""
        if call in (UNLINK, RMDIR):
            del node.entries[text[:-1]]
            return b""
        if call == STATFS:
            return struct.pack("<QQQQQIIII", *(1 << 20,) * 5, 4096, 255, 4096, 0) + bytes(24)
        if call in (RELEASE, RELEASEDIR, FSYNCDIR):
            return b""
        raise OSError(errno.ENOSYS, "")

    def transfer(self, call: int, node: Node, at: int, size: int, text: bytes) -> bytes:
        if call == READ:
            return bytes(node.data[at : at + size])
        if call == WRITE:
            node.data[at : at + size] = text[40 : 40 + size]
            return struct.pack("<II", size, 0)
        answer = b""
        for index, (name, entry) in enumerate(list(node.entries.items())[at:], at + 1):
            one = struct.pack("<QQII", entry.number, index, len(name), entry.mode >> 12) + name
            one += bytes(-len(one) % 8)
            if len(answer) + len(one) > size:
                break
            answer += one
        return answer


def serve(directory: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"refusing", directory.encode(), b"fuse", 0, options) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    server = Server()
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted
                return
            raise
        _, call, unique, number = struct.unpack("<IIQQ", request[:24])
        if call in WITHOUT_ANSWER:
            continue
        failed, answer = 0, b""
        try:
            answer = server.answer(call, number, request[40:])
        except OSError as error:
            failed = -error.errno
        os.write(device, struct.pack("<IiQ", 16 + len(answer), failed, unique) + answer)


if __name__ == "__main__":
    serve(sys.argv[1])
