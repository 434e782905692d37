"""Each row of data/calibration.json: what the model says of it, or why it says nothing.

A row is a *value* (published and predicted number), a *bound* (the row says "less than" or "more than"), or
an *ordering*. Rows of one experiment form a group: the cross-validation leaves out whole groups.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import msgspec

from forebay.plan import cases
from forebay.plan.cases import GIB, MIB, run
from forebay.plan.model import Prediction
from forebay.plan.parameters import Parameters, data

Predicted = Callable[[Parameters], float]
Kind = Literal["value", "below", "above", "ordering"]

#: Aggregators, stripe and times of the three runs of WRF-CHEM on Cori (S0-080 to S0-085, S0-121 to S0-126).
_WRF_CHEM_RUNS = {
    "default": {"wrfinput": (2, 8 * MIB), "wrfout": (2, 8 * MIB), "wrfbdy": (2, 8 * MIB)},
    "first": {"wrfinput": (4, 2 * MIB), "wrfout": (4, 2 * MIB), "wrfbdy": (4, 197973)},
    "tuned": {"wrfinput": (16, 262144), "wrfout": (16, 262144), "wrfbdy": (16, 50482)},
}
_BTIO_OSTS = {
    "S0-149": 1,
    "S0-150": 2,
    "S0-151": 4,
    "S0-152": 8,
    "S0-153": 16,
    "S0-154": 32,
    "S0-155": 64,
    "S0-156": 128,
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says of one row."""

    id: str
    group: str
    storage: str  # kind of storage
    published: float  # for an ordering, 1: that it holds
    predicted: Predicted
    unit: str
    kind: Kind = "value"
    about: str = ""  # what was run


@cache
def table() -> dict[str, dict[str, Any]]:
    """The published rows by id."""
    return {row["id"]: row for row in json.loads(data("calibration.json"))}


def rows() -> list[Row]:
    """All rows that the model speaks of."""
    return [
        *_btio_lustre(),
        *_wrf_restart(),
        *_btio_datawarp(),
        *_replib(),
        *_wrf_chem(),
        *_cori(),
        *_others(),
    ]


def _row(
    id: str,
    group: str,
    storage: str,
    predicted: Predicted,
    published: Any = None,
    unit: str = "",
    **more: Any,
) -> Row:
    found = table()[id.partition(":")[0]]
    about = found.get("workload") or found["system"]
    value = float(found["value"] if published is None else published)
    unit = unit or found.get("unit", "")
    return Row(
        id=id,
        group=group,
        storage=storage,
        published=value,
        predicted=predicted,
        unit=unit,
        about=about,
        **more,
    )


def _holds(test: Callable[[Parameters], bool]) -> Predicted:
    return lambda parameters: float(test(parameters))


def _btio_lustre() -> list[Row]:
    def seconds(osts: int) -> Predicted:
        return lambda parameters: run(parameters, "shaheen2.lustre", cases.btio_mpi(), servers=osts).seconds

    return [_row(id, "BTIO on Lustre", "lustre", seconds(osts)) for id, osts in _BTIO_OSTS.items()]


def _wrf_restart() -> list[Row]:
    def lustre(osts: int) -> Predicted:
        pattern = cases.wrf_restart(152, 1216)
        return lambda parameters: run(parameters, "shaheen2.lustre", pattern, servers=osts).seconds

    def datawarp(parameters: Parameters) -> Prediction:
        return run(
            parameters, "shaheen2.datawarp", cases.wrf_restart(160, 160, 46690 * 8303272.98), servers=6
        )

    def sixteen_tuned(parameters: Parameters) -> bool:
        pattern = cases.wrf_restart(256, 1024, 361e9)
        tuned = run(
            parameters, "shaheen2.datawarp", pattern, servers=16, aggregators=256, stripe_bytes=4 * MIB
        )
        return tuned.seconds < run(parameters, "shaheen2.datawarp", pattern, servers=64).seconds

    # CrayPat sums the time of all six writers: 1401 MB/s is the rate of one, as S0-065 shows.
    return [
        _row("S0-021", "WRF restart on Lustre", "lustre", lustre(1)),
        _row("S0-022", "WRF restart on Lustre", "lustre", lustre(144)),
        _row(
            "S0-030",
            "WRF restart on DataWarp",
            "datawarp",
            lambda p: datawarp(p).storage_bytes_per_s / 6 / MIB,
        ),
        _row("S0-031", "WRF restart on DataWarp", "datawarp", lambda p: 6 * datawarp(p).storage_s),
        _row("S0-146", "WRF restart on DataWarp", "datawarp", _holds(sixteen_tuned), 1, "", kind="ordering"),
    ]


def _btio(parameters: Parameters, servers: int, aggregators: int, stripe: int) -> Prediction:
    return run(
        parameters,
        "shaheen2.datawarp",
        cases.btio_pnetcdf(),
        servers=servers,
        aggregators=aggregators,
        stripe_bytes=stripe,
    )


def _btio_datawarp() -> list[Row]:
    group = "BTIO on DataWarp"

    def rate(servers: int, aggregators: int, stripe: int) -> Predicted:
        return lambda p: _btio(p, servers, aggregators, stripe).bytes_per_s / 1e6

    one, many, fine, two = rate(1, 1, 8 * MIB), rate(1, 64, 8 * MIB), rate(1, 64, MIB), rate(2, 64, MIB)
    middle, default = rate(1, 64, 2 * MIB), rate(64, 64, 8 * MIB)

    def best(parameters: Parameters) -> float:
        counts = [1 << power for power in range(8)]
        times = {count: _btio(parameters, 1, count, 8 * MIB).seconds for count in counts}
        return min(count for count in counts if times[count] <= 1.01 * min(times.values()))

    peak = cases.machine("shaheen2").storage["datawarp"].server_write_bytes_per_s / 1e6
    return [
        _row("S0-044", group, "datawarp", lambda p: many(p) / one(p)),
        _row("S0-045", group, "datawarp", best),
        _row("S0-046", group, "datawarp", lambda p: middle(p) / many(p), 1.10, "x"),
        _row("S0-047", group, "datawarp", many),
        _row("S0-052", group, "datawarp", fine),
        _row("S0-058", group, "datawarp", two),
        _row("S0-059", group, "datawarp", lambda p: two(p) / fine(p), 1.782, "x"),
        _row("S0-060", group, "datawarp", lambda p: many(p) / one(p)),
        _row("S0-042", group, "datawarp", lambda p: default(p) / one(p), kind="below"),
        _row("S0-043", group, "datawarp", lambda p: 100 * default(p) / (64 * peak), kind="below"),
    ]


def _replib() -> list[Row]:
    def found(parameters: Parameters) -> Prediction:
        return run(parameters, "shaheen2.datawarp", cases.replib(), servers=2)

    peak = 2 * cases.machine("shaheen2").storage["datawarp"].server_write_bytes_per_s

    def add(id: str, predicted: Callable[[Prediction], float], **more: Any) -> Row:
        return _row(id, "Replib on DataWarp", "datawarp", lambda p: predicted(found(p)), **more)

    return [
        add("S0-064", lambda one: one.bytes_per_s / MIB),
        add("S0-065", lambda one: one.storage_bytes_per_s / MIB),
        add("S0-067", lambda one: 100 * one.exchange_s / one.seconds),
        add("S0-068", lambda one: 100 * one.storage_s / one.seconds),
        add("S0-069", lambda one: one.storage_s),
        # "Less than 19 %" is the largest of several runs; this one reached 21 % of the published peak.
        add("S0-063", lambda one: 100 * one.bytes_per_s / peak),
    ]


def wrf_chem_file(parameters: Parameters, file: str, setting: str) -> Prediction:
    """One file of WRF-CHEM on Cori with one of the three published settings."""
    aggregators, stripe = _WRF_CHEM_RUNS[setting][file]
    pattern = cases.wrf_chem(file)
    return run(parameters, "cori1.datawarp", pattern, servers=1, aggregators=aggregators, stripe_bytes=stripe)


def _wrf_chem_s(parameters: Parameters, setting: str) -> float:
    return sum(wrf_chem_file(parameters, file, setting).seconds for file in _WRF_CHEM_RUNS[setting])


def _wrf_chem() -> list[Row]:
    group = "WRF-CHEM on DataWarp"
    files = {
        "wrfinput": ("S0-086", "S0-121", "S0-122", "S0-087", "S0-088", "S0-089"),
        "wrfout": ("S0-090", "S0-123", "S0-124", "S0-091", "S0-092", "S0-093"),
        "wrfbdy": ("S0-094", "S0-125", "S0-126", "S0-095", "S0-096", "S0-097"),
    }

    def of(file: str, setting: str, value: Callable[[Prediction], float]) -> Predicted:
        return lambda parameters: value(wrf_chem_file(parameters, file, setting))

    found = []
    for file, (default, first, tuned, raw, net, share) in files.items():
        found += [
            _row(default, group, "datawarp", of(file, "default", lambda one: one.seconds)),
            _row(first, group, "datawarp", of(file, "first", lambda one: one.seconds)),
            _row(tuned, group, "datawarp", of(file, "tuned", lambda one: one.seconds)),
            _row(raw, group, "datawarp", of(file, "default", lambda one: one.storage_bytes_per_s / MIB)),
            _row(net, group, "datawarp", of(file, "default", lambda one: one.bytes_per_s / MIB)),
            _row(
                share, group, "datawarp", of(file, "default", lambda one: 100 * one.exchange_s / one.seconds)
            ),
        ]
    return found + _wrf_chem_runs(group)


def _wrf_chem_runs(group: str) -> list[Row]:
    """Run times: 244 s by default, of which the model predicts what the settings save."""
    whole_s = float(table()["S0-080"]["value"])

    def after(setting: str) -> Predicted:
        return lambda p: whole_s - _wrf_chem_s(p, "default") + _wrf_chem_s(p, setting)

    def gain(parameters: Parameters) -> float:
        ratios = [
            wrf_chem_file(parameters, file, "default").seconds
            / wrf_chem_file(parameters, file, "tuned").seconds
            for file in _WRF_CHEM_RUNS["tuned"]
        ]
        return sum(ratios) / len(ratios)

    def lustre_is_faster(parameters: Parameters) -> bool:
        """64 OSTs with Cray's default aggregators, against the default of four DataWarp nodes."""
        files = list(map(cases.wrf_chem, _WRF_CHEM_RUNS["default"]))
        osts = sum(run(parameters, "cori1.lustre", file, servers=64).seconds for file in files)
        nodes = sum(run(parameters, "cori1.datawarp", file, servers=4).seconds for file in files)
        return osts < nodes

    def best(parameters: Parameters) -> float:
        """The fewest nodes that are as fast as any, with default aggregators."""
        times = {
            count: sum(
                run(parameters, "cori1.datawarp", cases.wrf_chem(file), servers=count).seconds
                for file in _WRF_CHEM_RUNS["default"]
            )
            for count in (1, 2, 4, 8, 16, 32, 64)
        }
        return min(count for count, seconds in times.items() if seconds <= 1.01 * min(times.values()))

    def throughput(setting: str) -> Predicted:
        """Darshan's estimate counts files that no row names: it is compared with that of the default run."""
        default = float(table()["S0-081"]["value"])
        return lambda p: default * _wrf_chem_s(p, "default") / _wrf_chem_s(p, setting)

    return [
        _row("S0-083", group, "datawarp", throughput("first")),
        _row("S0-085", group, "datawarp", throughput("tuned")),
        _row("S0-082", group, "datawarp", after("first")),
        _row("S0-084", group, "datawarp", after("tuned")),
        _row("S0-128", group, "datawarp", lambda p: 100 * (1 - after("first")(p) / whole_s)),
        _row("S0-129", group, "datawarp", lambda p: 100 * (1 - after("tuned")(p) / whole_s)),
        _row("S0-127", group, "datawarp", gain, 3.75),
        _row("S0-143", group, "datawarp", gain),
        _row("S0-078", group, "datawarp", best),
        _row("S0-079", group, "datawarp", _holds(lustre_is_faster), 1, "", kind="ordering"),
    ]


def _cori() -> list[Row]:
    def rate(place: str, access: Any, direction: Any, servers: int, **more: int) -> Predicted:
        pattern = cases.cori_ior(access, direction)
        return lambda p: run(p, place, pattern, servers=servers, **more).bytes_per_s / 1e9

    def random(direction: Any) -> Predicted:
        pattern = cases.cori_random(direction)
        return lambda p: run(p, "cori1.datawarp", pattern, servers=140).bytes_per_s / 4096e6

    def nyx(transfer: float, **more: int) -> Predicted:
        return lambda p: run(p, "cori1.datawarp", cases.nyx(transfer, **more), servers=1).bytes_per_s / GIB

    small, good, large, many = nyx(8 << 10), nyx(512 << 10), nyx(4 << 20), nyx(4 << 20, writers=16, nodes=8)
    own, one_file = "file-per-process", "independent"
    group, lustre = "IOR on Cori's DataWarp", "IOR on Cori's Lustre"
    enough = _holds(lambda p: many(p) > 0.7 * 6 and large(p) < 0.35 * 6)
    return [
        _row("S3-009", group, "datawarp", rate("cori1.datawarp", own, "read", 140)),
        _row("S3-010", group, "datawarp", rate("cori1.datawarp", own, "write", 140)),
        _row("S3-011", group, "datawarp", rate("cori1.datawarp", one_file, "read", 140)),
        _row("S3-012", group, "datawarp", rate("cori1.datawarp", one_file, "write", 140)),
        _row("S3-013", "random IOR on DataWarp", "datawarp", random("read")),
        _row("S3-014", "random IOR on DataWarp", "datawarp", random("write")),
        _row("S3-015", lustre, "lustre", rate("cori1.lustre", own, "write", 248, stripe_count=1), 725),
        _row("S3-016:write", lustre, "lustre", rate("cori1.lustre", one_file, "write", 248), 223),
        _row("S3-016:read", lustre, "lustre", rate("cori1.lustre", one_file, "read", 248), 573),
        _row("S3-019", "Nyx on DataWarp", "datawarp", large),
        _row(
            "S3-020", "Nyx on DataWarp", "datawarp",
            _holds(lambda p: small(p) < 0.5 * large(p) and good(p) > 0.7 * large(p)), 1, "", kind="ordering",
        ),
        _row(
            "S3-021", "Nyx on DataWarp", "datawarp", enough,
            1, "", kind="ordering",
        ),
    ]  # fmt: skip


def _others() -> list[Row]:
    def alpine(parameters: Parameters) -> float:
        pattern = cases.ior("file-per-process", "write", nodes=10, ranks=160, block=8e9, transfer=16 * MIB)
        return run(parameters, "summit.alpine", pattern, servers=154).bytes_per_s / 1e9

    def pidx(parameters: Parameters) -> float:
        """Up to all nodes; one process of each node gathers the 64 MB of its 32 ranks and writes."""
        pattern = cases.ior(
            "independent", "write", nodes=6144, ranks=6144, block=2048 * MIB, transfer=8 * MIB
        )
        return run(parameters, "shaheen2.datawarp", pattern, servers=268).bytes_per_s / 1e9

    def serial(parameters: Parameters, osts: int) -> float:
        pattern = cases.ior("serial", "write", nodes=1, ranks=1, block=5e9, transfer=32 * MIB)
        return run(parameters, "xe6.lustre", pattern, servers=osts, stripe_bytes=32 * MIB).seconds

    def dump(parameters: Parameters) -> float:
        """8000 ranks write interleaved rows of their 16 x 16 x 16 elements into 8 stripes."""
        pattern = msgspec.structs.replace(
            cases.ior(
                "independent", "write", nodes=1000, ranks=8000, block=6.4 * GIB / 8000, transfer=16 * 8.0
            ),
            is_interleaved=True,
        )
        return run(parameters, "xe6.lustre", pattern, servers=8).seconds / 60

    return [
        _row("S2-029", "IOR on Alpine", "spectrum-scale", alpine),
        _row("S0-161", "PIDX on DataWarp", "datawarp", pidx),
        _row(
            "S4-011",
            "XE6",
            "lustre",
            _holds(lambda p: serial(p, 160) > 0.95 * serial(p, 1)),
            1,
            "",
            kind="ordering",
        ),
        _row("S4-017", "XE6", "lustre", dump, kind="above"),
    ]
