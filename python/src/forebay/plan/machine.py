"""Reads machine files for the planner, and checks them (docs/reference/machine-files.md)."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from forebay.plan import machine_check, machine_file, units
from forebay.plan.errors import PlanError
from forebay.plan.machine_file import Figure, MachineFile, StorageKind
from forebay.profiles import regular_file
from forebay.profiles.errors import ProfileError
from forebay.profiles.machine import find_machine
from forebay.quantities import printable

PAGE = "docs/reference/machine-files.md"
#: A machine file has some hundred lines; a larger file is something else.
FILE_BYTES_MAX = 1 << 20
#: Times that may be zero.
_CAN_BE_ZERO = {"switch_penalty", "switch_time", "per_stripe", "stripe_time"}
#: The name of the storage of a file that has only the emulation's tables.
EMULATED = "pfs"
_GRANULARITIES = {"datawarp"}


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """One storage of a machine, in bytes, seconds and bytes per second. None: the file does not say."""

    name: str
    kind: StorageKind
    servers: int
    server_write_bytes_per_s: float
    server_read_bytes_per_s: float
    capacity_bytes: float | None = None
    server_capacity_bytes: float | None = None
    granularity_bytes: float | None = None
    pool: str | None = None
    stripe_count: int
    stripe_count_max: int
    stripe_bytes: int
    request_s: float | None = None
    switch_s: float | None = None
    operation_s: float | None = None
    stripe_s: float | None = None
    process_bytes_per_s: float | None = None  # emulation: the limit of one process
    is_emulated: bool = False

    def server_bytes_per_s(self, direction: str) -> float:
        """Peak of one server for `read` or `write`."""
        return self.server_read_bytes_per_s if direction == "read" else self.server_write_bytes_per_s


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: its nodes and its storages."""

    name: str
    scale: str
    path: str
    nodes: int | None = None
    cores_per_node: int | None = None
    memory_per_node_bytes: float | None = None
    node_bytes_per_s: float | None = None
    storage: dict[str, Storage]

    def choose(self, name: str) -> Storage:
        """The storage of that name. PlanError names those that exist."""
        if name not in self.storage:
            known = ", ".join(self.storage)
            raise PlanError(f"{self.name} has no storage {printable(name)!r}", f"choose one of: {known}")
        return self.storage[name]


def read_machine(named: str | Path) -> Machine:
    """Reads and checks a machine file, named by its path or as one that is installed.

    Raises PlanError, which names the file, the key and the remedy.
    """
    path = find_machine(named)
    tables = _tables(path)
    file = _file(path, tables)
    values = dict(_figures(path, file))
    if file.storage is UNSET:
        return _emulated(path, file, values)
    if file.compute is UNSET:
        raise PlanError(
            f"{path}: compute is missing", f"add the table [compute] with nodes; {PAGE} has the keys"
        )
    storages = {
        name: _storage(path, name, one, values, int(values["compute.nodes"]))
        for name, one in file.storage.items()
    }
    if not storages:
        raise PlanError(
            f"{path}: storage is empty", f"add a table such as [storage.lustre]; {PAGE} has the keys"
        )
    return Machine(
        name=file.name,
        scale=file.scale,
        path=str(path),
        nodes=int(values["compute.nodes"]),
        cores_per_node=_whole(values.get("compute.cores_per_node")),
        memory_per_node_bytes=values.get("compute.memory_per_node"),
        node_bytes_per_s=values.get("compute.node_bandwidth"),
        storage=storages,
    )


def read_file(named: str | Path) -> MachineFile:
    """The tables of a machine file as they are written, with sources. Raises PlanError as `read_machine`."""
    read_machine(named)
    path = find_machine(named)
    return _file(path, _tables(path))


def _tables(path: Path) -> dict[str, Any]:
    hint = "forebay plan machine list shows what is installed; name a file of your own with its path"
    try:
        with regular_file.open_file(path) as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except ProfileError as error:
        raise PlanError(str(error), hint) from error
    except OSError as error:
        raise PlanError(f"{printable(str(path))}: {error.strerror}", hint) from error
    if len(data) > FILE_BYTES_MAX:
        raise PlanError(f"{path}: it is larger than {FILE_BYTES_MAX} bytes, so it is no machine file", hint)
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: it is not TOML: {error}", f"{PAGE} has an example to copy") from error


def _file(path: Path, tables: dict[str, Any]) -> MachineFile:
    """Converts table by table, so that an error names its table."""
    rest = {name: value for name, value in tables.items() if name != "storage"}
    file = _convert(path, "", rest, MachineFile)
    storage = tables.get("storage")
    if storage is not None:
        if not isinstance(storage, dict) or not all(isinstance(one, dict) for one in storage.values()):
            raise PlanError(
                f"{path}: storage is not a table of tables", "write [storage.NAME] before its keys"
            )
        file.storage = {
            name: _convert(path, f"storage.{name}", one, machine_file.Storage)
            for name, one in storage.items()
        }
    emulation = {
        name for name in ("targets", "client", "metadata", "layout") if getattr(file, name) is not UNSET
    }
    if file.storage is UNSET and len(emulation) < 4:
        missing = sorted({"targets", "client", "metadata", "layout"} - emulation)
        hint = "a planner's file has [compute] and [storage.NAME]; one of the emulation also " + ", ".join(
            missing
        )
        raise PlanError(f"{path}: it describes no storage", hint)
    return file


def _convert(path: Path, table: str, value: Any, of: type) -> Any:
    try:
        return msgspec.convert(value, of)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        key = ".".join(part for part in (table, place.rstrip("`").lstrip(".")) if part)
        hint = f"{PAGE} has the keys"
        unknown = re.search(r"unknown field `([^`]*)`", message)
        if unknown:
            near = difflib.get_close_matches(unknown[1], _fields(of), n=1)
            key = f"{key}.{unknown[1]}".lstrip(".")
            message, hint = "it is not a key", f"did you mean {near[0]}?" if near else hint
        missing = re.search(r"missing required field `([^`]*)`", message)
        if missing:
            key, message = f"{key}.{missing[1]}".lstrip("."), "it is missing"
            hint = (
                'name a publication, a measurement, or "assumption: ..."' if missing[1] == "source" else hint
            )
        raise PlanError(f"{path}: {printable(key)}: {printable(message)}", hint) from error


def _fields(of: type) -> list[str]:
    found = [field.name for field in msgspec.structs.fields(of)]
    for table in (machine_file.Compute, machine_file.Targets, machine_file.Layout):
        found += [field.name for field in msgspec.structs.fields(table)] if of is MachineFile else []
    return found


def _figures(path: Path, file: MachineFile) -> Iterator[tuple[str, float]]:
    """(key, value) of each figure of the file, as numbers. Raises PlanError for a bad one."""
    for key, figure in figures_in(file):
        name = key.rpartition(".")[2]
        try:
            value = units.parse(figure.value, figure.kind, can_be_zero=name in _CAN_BE_ZERO)
        except ValueError as error:
            shown = printable(repr(figure.value))
            raise PlanError(
                f"{path}: {key} = {shown}: {error}", f"write {units.EXAMPLES[figure.kind]}"
            ) from error
        if not figure.source.strip():
            hint = 'name a publication, a measurement, or "assumption: ..." with the reason'
            raise PlanError(f"{path}: {key} has no source", hint)
        machine_check.check_plausible(path, key, figure.kind, value)
        yield key, value


def figures_in(of: msgspec.Struct | dict, prefix: str = "") -> Iterator[tuple[str, Figure]]:
    """Each figure of a machine file, with its dotted key."""
    if isinstance(of, dict):
        members: Any = of.items()
    else:
        members = ((field.name, getattr(of, field.name)) for field in msgspec.structs.fields(of))
    for name, value in members:
        if isinstance(value, Figure):
            yield prefix + name, value
        elif isinstance(value, msgspec.Struct | dict):
            yield from figures_in(value, f"{prefix}{name}.")


def _storage(
    path: Path, name: str, written: machine_file.Storage, values: dict[str, float], nodes: int
) -> Storage:
    def value(key: str) -> float | None:
        return values.get(f"storage.{name}.{key}")

    key = f"{path}: storage.{name}"
    servers = machine_check.servers(key, written.kind, _whole(value("servers")), nodes)
    write = machine_check.of_one_server(key, "write_bandwidth", value, servers)
    if write is None:
        hint = "add write_bandwidth (all servers together) or server_write_bandwidth (one)"
        raise PlanError(f"{key}.write_bandwidth is missing", hint)
    read = machine_check.of_one_server(key, "read_bandwidth", value, servers)
    per_server = machine_check.of_one_server(key, "capacity", value, servers)
    granularity = value("granularity")
    if written.pool is not UNSET:
        machine_check.check_pool(key, written.pool)
    machine_check.check_granularity(key, written.kind in _GRANULARITIES, granularity, per_server)
    most = _whole(value("stripe_count_max")) or servers
    count = _whole(value("stripe_count")) or (1 if written.kind == "lustre" else most)
    machine_check.check_stripes(key, count, most, servers)
    return Storage(
        name=name,
        kind=written.kind,
        servers=servers,
        server_write_bytes_per_s=write,
        server_read_bytes_per_s=read or write,
        capacity_bytes=value("capacity") or (per_server and per_server * servers),
        server_capacity_bytes=per_server,
        granularity_bytes=granularity,
        pool=None if written.pool is UNSET else written.pool,
        stripe_count=count,
        stripe_count_max=most,
        stripe_bytes=int(value("stripe_size") or (1 << 20)),
        request_s=value("request_time"),
        switch_s=value("switch_time"),
        operation_s=value("operation_time"),
        stripe_s=value("stripe_time"),
    )


def _emulated(path: Path, file: MachineFile, values: dict[str, float]) -> Machine:
    """The emulated parallel file system as a machine with one storage. Its clients are processes."""
    servers = int(values["targets.count"])
    stripes = int(values["layout.stripe_count"])
    machine_check.check_stripes(f"{path}: layout", stripes, servers, servers)
    storage = Storage(
        name=EMULATED,
        kind="lustre",
        servers=servers,
        server_write_bytes_per_s=values["targets.bandwidth"],
        server_read_bytes_per_s=values["targets.bandwidth"],
        stripe_count=stripes,
        stripe_count_max=servers,
        stripe_bytes=int(values["layout.stripe_size"]),
        request_s=values["targets.latency"],
        switch_s=values["targets.switch_penalty"],
        operation_s=values["metadata.operation"],
        stripe_s=values["metadata.per_stripe"],
        process_bytes_per_s=values["client.bandwidth"],
        is_emulated=True,
    )
    return Machine(name=file.name, scale=file.scale, path=str(path), storage={EMULATED: storage})


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
