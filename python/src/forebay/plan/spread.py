"""How the bytes of one call fall on stripes, and so on aggregators and servers."""

from __future__ import annotations

from functools import lru_cache

import msgspec

#: A call may begin anywhere in a stripe; so many positions are averaged.
OFFSETS = 16


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of one call over bins that own stripes in turn."""

    share: float  # of the bytes, in the fullest bin
    active: float  # bins with bytes
    request_bytes: float  # average piece


@lru_cache(maxsize=65536)
def spread(call_bytes: float, stripe_bytes: float, bins: int, is_aligned: bool = False) -> Spread:
    """Stripes of `stripe_bytes` go to `bins` in turn. Averages over where a call begins, unless aligned.

    A call whose size is a multiple of the stripe, or divides it, is taken as aligned: such files begin at a
    stripe, and their calls follow each other.
    """
    if is_aligned or call_bytes % stripe_bytes == 0 or stripe_bytes % call_bytes == 0:
        return _at(call_bytes, stripe_bytes, bins, 0.0)
    found = [
        _at(call_bytes, stripe_bytes, bins, (at + 0.5) / OFFSETS * stripe_bytes) for at in range(OFFSETS)
    ]
    return Spread(
        share=sum(one.share for one in found) / OFFSETS,
        active=sum(one.active for one in found) / OFFSETS,
        request_bytes=sum(one.request_bytes for one in found) / OFFSETS,
    )


def _at(call_bytes: float, stripe_bytes: float, bins: int, offset: float) -> Spread:
    first = min(stripe_bytes - offset, call_bytes)
    whole, last = divmod(call_bytes - first, stripe_bytes)
    pieces = 1 + int(whole) + (last > 0)

    def of_bin(number: int) -> float:
        """The bytes of a bin: whole stripes, but for the first and the last piece."""
        count = -(-(pieces - number) // bins)
        is_first, is_last = number == 0, last > 0 and number == (pieces - 1) % bins
        return (count - is_first - is_last) * stripe_bytes + is_first * first + is_last * last

    # Bins are dealt in turn, so none after the second has more than it.
    fullest = max(of_bin(number) for number in range(min(2, bins, pieces)))
    return Spread(share=fullest / call_bytes, active=min(bins, pieces), request_bytes=call_bytes / pieces)


def even(call_bytes: float, bins: int, piece_bytes: float) -> Spread:
    """Without regard to stripes: equal parts, in pieces of at most `piece_bytes` (CB_ALIGN 0)."""
    part = call_bytes / bins
    pieces = max(1, -(-int(part) // int(piece_bytes)))
    return Spread(share=1 / bins, active=bins, request_bytes=part / pieces)
