"""Darshan's id of a file: the 64-bit hash of its path, so that our logs and Darshan's name a file alike.

The hash is Bob Jenkins' of 1997 for 64-bit words ("lookup8", public domain), over the bytes of the path.
"""

from __future__ import annotations

MASK = (1 << 64) - 1
GOLDEN_RATIO = 0x9E3779B97F4A7C13
#: Of one round of mixing: bits by which the third, first and second word are shifted; negative: to the left.
SHIFTS = ((43, -9, 8), (38, -23, 5), (35, -49, 11), (12, -18, 22))


def _shifted(word: int, bits: int) -> int:
    return word >> bits if bits > 0 else (word << -bits) & MASK


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for first, second, third in SHIFTS:
        a = ((a - b - c) & MASK) ^ _shifted(c, first)
        b = ((b - c - a) & MASK) ^ _shifted(a, second)
        c = ((c - a - b) & MASK) ^ _shifted(b, third)
    return a, b, c


def record_id(name: str) -> int:
    """The id under which Darshan records the file `name`."""
    text = name.encode(errors="surrogateescape")
    a = b = 0
    c = GOLDEN_RATIO
    whole = len(text) - len(text) % 24
    for begin in range(0, whole, 24):
        words = [int.from_bytes(text[at : at + 8], "little") for at in range(begin, begin + 24, 8)]
        a, b, c = _mixed((a + words[0]) & MASK, (b + words[1]) & MASK, (c + words[2]) & MASK)
    rest = text[whole:]
    a = (a + int.from_bytes(rest[:8], "little")) & MASK
    b = (b + int.from_bytes(rest[8:16], "little")) & MASK
    # The lowest byte of the third word is kept for the length.
    c = (c + len(text) + (int.from_bytes(rest[16:], "little") << 8)) & MASK
    return _mixed(a, b, c)[2]
