"""Files of CephFS by libcephfs itself, with the calls of `os` that `engine_worker.py` makes.

It needs the binding `cephfs`, which Debian has for the system's Python alone.
"""

import ctypes

import cephfs

FAILURE = cephfs.Error


class Library:
    """The client that a mount with these arguments would be."""

    def __init__(self, config, keyring, name, root):
        self.client = cephfs.LibCephFS(auth_id=name.removeprefix("client."), conffile=config)
        self.client.conf_set("keyring", keyring)
        self.client.mount(mount_root=root.encode())
        # As the mounts: without it a write may never return once another node writes the file.
        program = ctypes.CDLL(None)
        has_preload = hasattr(program, "forebay_ceph_look_again")
        self.look_again = program.forebay_ceph_look_again if has_preload else lambda looks_again: None

    def open(self, path, flags, mode=0o666):
        return self.client.open(path, flags, mode)

    def pwrite(self, file, data, offset):
        self.look_again(True)
        written = self.client.write(file, bytes(data), offset)
        self.look_again(False)
        return written

    def pread(self, file, size, offset):
        self.look_again(True)
        data = self.client.read(file, offset, size)
        self.look_again(False)
        return data

    def fsync(self, file):
        self.client.fsync(file, 0)

    def close(self, file):
        self.client.close(file)

    def mkdir(self, path):
        self.client.mkdir(path, 0o777)

    def stat(self, path):
        return self.client.stat(path)

    def unlink(self, path):
        self.client.unlink(path)

    def rmdir(self, path):
        self.client.rmdir(path)
