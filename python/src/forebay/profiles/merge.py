"""Several accounts of one file as one: blocks of a file that was opened again, layers kept apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from forebay.profiles.model import Collective, File, Layer, Traffic

COMMON_SIZES_MAX = 4

_LARGEST = frozenset({"ranks", "last_s", "closed_s", "end_bytes", "alignment_bytes"})

_SMALLEST = frozenset({"first_s", "opened_s"})


def known_sum(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def positive(value: int | None) -> int | None:
    """A size or number of which there is at least one; None where the source says 0 or less: not known."""
    return value if value is not None and value > 0 else None


def most_common(sizes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(bytes, calls), those of one size added, the commonest first."""
    counted: Counter[int] = Counter()
    for size_bytes, calls in sizes:
        counted[size_bytes] += calls
    return counted.most_common(COMMON_SIZES_MAX)


def _one(name: str, left: float | None, right: float | None) -> float | None:
    """One figure of two accounts; what one of them does not know is the other's."""
    known = [value for value in (left, right) if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    if name in _LARGEST:
        return max(known)
    return min(known) if name in _SMALLEST else sum(known)


def join_traffic(left: Traffic, right: Traffic) -> Traffic:
    """The traffic of both; the slowest rank of each may be another, so its sum is an upper bound."""
    if left.sizes is None or right.sizes is None:
        sizes = left.sizes or right.sizes
    else:
        sizes = [sum(calls) for calls in zip(left.sizes, right.sizes, strict=True)]
    common_sizes = most_common([*left.common_sizes, *right.common_sizes])
    names = (field for field in Traffic.__struct_fields__ if field not in ("sizes", "common_sizes"))
    figures = {name: _one(name, getattr(left, name), getattr(right, name)) for name in names}
    return Traffic(sizes=sizes, common_sizes=common_sizes, **figures)


def join_layers(left: Layer, right: Layer) -> Layer:
    """Both accounts of one layer of one file. The seconds of each rank are not known afterwards."""
    names = (field for field in Layer.__struct_fields__ if field not in ("read", "write", "rank_s"))
    figures = {name: _one(name, getattr(left, name), getattr(right, name)) for name in names}
    return Layer(
        read=join_traffic(left.read, right.read), write=join_traffic(left.write, right.write), **figures
    )


def join_collective(left: Collective | None, right: Collective | None) -> Collective | None:
    """Aggregators: the most of any time the file was open; rounds and read-modify-write: all."""
    if left is None or right is None:
        return left or right
    active = [left.active, right.active]
    known = [classes for classes in active if classes is not None]
    return Collective(
        aggregators_write=_one("ranks", left.aggregators_write, right.aggregators_write),
        aggregators_read=_one("ranks", left.aggregators_read, right.aggregators_read),
        active=[sum(calls) for calls in zip(*known, strict=True)] if known else None,
        rmw_calls=known_int_sum(left.rmw_calls, right.rmw_calls),
        rmw_bytes=known_int_sum(left.rmw_bytes, right.rmw_bytes),
        rmw_s=known_sum((left.rmw_s, right.rmw_s)),
    )


def known_int_sum(*values: int | None) -> int | None:
    """`known_sum` of whole numbers."""
    total = known_sum(values)
    return None if total is None else int(total)


def join_files(left: File, right: File) -> File:
    """Both accounts of one path. Of what cannot be added (hints, who opened it) the later account decides."""
    layers = dict(left.layers)
    for name, layer in right.layers.items():
        layers[name] = join_layers(layers[name], layer) if name in layers else layer
    own = ("path", "layers", "ranks", "collective", "writers", "not_closed", "lazy_opens", "rank")
    later = {name: _later(left, right, name) for name in File.__struct_fields__ if name not in own}
    ranks = _one("ranks", left.ranks, right.ranks)
    return File(
        path=left.path,
        layers=layers,
        ranks=ranks,
        collective=join_collective(left.collective, right.collective),
        writers=left.writers + right.writers,
        not_closed=known_int_sum(left.not_closed, right.not_closed),
        lazy_opens=known_int_sum(left.lazy_opens, right.lazy_opens),
        rank=left.rank if left.rank == right.rank else None,
        **later,
    )


def _later(left: File, right: File, name: str) -> object:
    value = getattr(right, name)
    return getattr(left, name) if value is None else value


def by_path(files: Iterable[File]) -> list[File]:
    """One file for each path, in the order of their first account."""
    found: dict[str, File] = {}
    for file in files:
        found[file.path] = join_files(found[file.path], file) if file.path in found else file
    return list(found.values())


def split_streams(file: File) -> list[File]:
    """A stream of C is a use of its own: none of its calls is one of another layer's, and all count."""
    if "STDIO" not in file.layers or len(file.layers) == 1:
        return [file]
    rest = {name: layer for name, layer in file.layers.items() if name != "STDIO"}
    stream = File(path=file.path, layers={"STDIO": file.layers["STDIO"]}, ranks=file.ranks, rank=file.rank)
    stream.mount, stream.file_system = file.mount, file.file_system
    return [replace(file, layers=rest), stream]
