"""Traces made up record by record, as docs/reference/trace.md has them."""

from forebay.profiles.trace import _checksum


def number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def signed(value: int) -> bytes:
    return number(value << 1 if value >= 0 else (-value << 1) - 1)


def block(records: bytes) -> bytes:
    return b"".join(one.to_bytes(4, "little") for one in (len(records), _checksum(records))) + records


def file_of(*calls: bytes, begun_ns: int = 0, trailer: bytes = b"\x0f" + b"\0" * 5) -> bytes:
    """A trace of these calls, in ticks of 100 ns."""
    header = b"\0" + b"".join(map(number, (1, 0, 1, 0, 1, begun_ns, 100))) + b"\0\0\0"
    return b"FBTRACE\n" + block(header) + block(b"".join(calls) + trailer)


def call(tag: int, distance: int, duration: int, own: bytes = b"", flags: int = 0) -> bytes:
    return bytes([tag, flags]) + signed(distance) + number(duration) + own
