"""Logs that Darshan's library cannot read: packed with bzip2, not packed, of the other byte order."""

import bz2
import struct
import zlib
from pathlib import Path

import pytest
from darshan.log_utils import get_log_path

from forebay.profiles import darshan_log
from forebay.profiles.errors import ProfileError

ZLIB, BZIP2, NOT_PACKED = range(3)
PACK = {ZLIB: zlib.compress, BZIP2: bz2.compress, NOT_PACKED: bytes}
PACKED_WITH_AT = 16
POSIX = 1
GENUINE = {"3.41": Path(__file__).parents[1] / "logs" / "mpiio_shared_default.darshan"}
GENUINE |= {"3.10": Path(get_log_path("sample.darshan")), "many": Path(get_log_path("sample-badost.darshan"))}


class Parts:
    """A log in parts: its job, the names of files, and the modules, unpacked."""

    def __init__(self, content: bytes) -> None:
        self.modules, self.places_at = (64, 32) if content[:8].rstrip(b"\0") >= b"3.41" else (16, 24)
        self.places = f"{2 * (1 + self.modules)}Q"
        self.header = bytearray(content[: self.places_at + struct.calcsize(self.places) + 4 * self.modules])
        found = struct.unpack_from(f"<{self.places}", content, self.places_at)
        self.parts = [unpacked(content[len(self.header) : found[0]])]
        self.parts += [unpacked(content[at : at + size]) for at, size in zip(found[::2], found[1::2], strict=True)]

    def log(self, pack: int, order: str = "<") -> bytes:
        header, body, places = bytearray(self.header), b"", []
        for part in self.parts:
            packed = PACK[pack](part) if part else b""
            places += [len(header) + len(body) if part else 0, len(packed)]
            body += packed
        struct.pack_into(f"{order}{self.places}", header, self.places_at, *places[2:])
        header[PACKED_WITH_AT] = pack
        return bytes(header) + body


def unpacked(content: bytes) -> bytes:
    whole = b""
    while content:
        stream = zlib.decompressobj()
        whole += stream.decompress(content)
        content = stream.unused_data
    return whole


def swapped(words: bytes) -> bytes:
    return struct.pack(f">{len(words) // 8}Q", *struct.unpack(f"<{len(words) // 8}Q", words))


def of_other_byte_order(log: Parts) -> bytes:
    """As a machine of the other byte order writes it: the job, the names, and POSIX alone."""
    numbers = 56 if log.modules == 64 else 40
    job, names, posix = log.parts[0], log.parts[1], log.parts[2 + POSIX]
    swapped_names = b""
    while names:
        end = names.index(b"\0", 8) + 1
        swapped_names, names = swapped_names + swapped(names[:8]) + names[8:end], names[end:]
    nothing = [b""] * (log.modules - 2)
    log.parts = [swapped(job[:numbers]) + job[numbers:], swapped_names, b"", swapped(posix), *nothing]
    versions_at = log.places_at + struct.calcsize(log.places)
    versions = struct.unpack_from(f"<{log.modules}I", log.header, versions_at)
    struct.pack_into(f">{log.modules}I", log.header, versions_at, 0, versions[POSIX], *[0] * (log.modules - 2))
    log.header[8:16] = log.header[8:16][::-1]
    log.header[PACKED_WITH_AT + 1 : log.places_at] = bytes(log.places_at - PACKED_WITH_AT - 1)
    return log.log(ZLIB, ">")


@pytest.mark.parametrize("pack", [BZIP2, NOT_PACKED])
@pytest.mark.parametrize("name", GENUINE)
def test_log_of_any_packing_is_read(tmp_path, name, pack):
    """Without packing, the modules of the largest take 1.6 MB; the library crashes on more than 1 MiB."""
    path = tmp_path / "a.darshan"
    path.write_bytes(Parts(GENUINE[name].read_bytes()).log(pack))
    assert darshan_log.read_log(path) == darshan_log.read_log(GENUINE[name])


@pytest.mark.parametrize("pack", [BZIP2, NOT_PACKED])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_truncated_log_of_any_packing_is_refused(tmp_path, pack, share):
    path = tmp_path / "a.darshan"
    whole = Parts(GENUINE["3.41"].read_bytes()).log(pack)
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ProfileError, match="truncated or damaged"):
        darshan_log.read(path)


def test_log_that_unpacks_to_more_than_a_log_holds_is_refused(tmp_path):
    path, log = tmp_path / "a.darshan", Parts(GENUINE["3.41"].read_bytes())
    log.parts[2 + POSIX] = bytes(1 << 27)
    path.write_bytes(log.log(BZIP2))
    with pytest.raises(ProfileError, match="unpacks to more"):
        darshan_log.read(path)


@pytest.mark.parametrize("name", GENUINE)
def test_log_of_the_other_byte_order_has_the_same_counters(tmp_path, name):
    path = tmp_path / "a.darshan"
    path.write_bytes(of_other_byte_order(Parts(GENUINE[name].read_bytes())))
    found, genuine = (darshan_log.read_log(one).modules["POSIX"] for one in (path, GENUINE[name]))
    assert len(found.records) > 0 and found == genuine
