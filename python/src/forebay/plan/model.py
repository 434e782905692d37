"""The model: how long a pattern takes on a storage. docs/explanation/planner.md derives it.

Opening, synchronisation, exchange and transfer follow each other. A transfer takes about as long as its
slowest resource: streams of processes, nodes, servers, locks. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import math

import msgspec

from forebay.plan.machine import Machine, Storage
from forebay.plan.parameters import Parameters
from forebay.plan.pattern import SIEVE_BYTES, Pattern, Settings
from forebay.plan.spread import Spread, even, spread

#: Lustre's clients send data in requests of this size at most.
RPC_BYTES = 1 << 20
#: Resources that limit together slow each other. In this norm, 1 adds times and infinity takes the largest.
NORM = 4.0
#: Kinds of storage whose clients gather small requests.
_GATHERED = ("lustre", "spectrum-scale")
#: A process on local storage has no network before it.
LOCAL_KINDS = ("node-local", "directory")
#: Metadata operations on local storage: one system call.
LOCAL_OPEN_S = 20e-6


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a pattern and its parts."""

    seconds: float
    open_s: float
    synchronisation_s: float  # of collective calls and buffer cycles
    exchange_s: float  # between ranks and aggregators
    storage_s: float  # in system calls
    bound_by: str  # what limits storage_s: streams, nodes, servers or locks
    total_bytes: float

    @property
    def bytes_per_s(self) -> float:
        """Of the whole phase."""
        return self.total_bytes / self.seconds

    @property
    def storage_bytes_per_s(self) -> float:
        """In system calls alone, as Cray's raw bandwidth."""
        return self.total_bytes / self.storage_s


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """One storage of one machine with the parameters."""

    machine: Machine
    storage: Storage
    parameters: Parameters

    def stream_bytes_per_s(self, request_bytes: float) -> float:
        """Of one process with requests of that size."""
        parameters, limit = self.parameters, self.storage.process_bytes_per_s
        if limit is not None:
            return limit
        if self.storage.kind in LOCAL_KINDS:
            return math.inf  # one process keeps a drive busy: the kernel writes behind and reads ahead
        if self.storage.kind == "lustre":
            request_bytes = min(request_bytes, RPC_BYTES)
        return request_bytes / (parameters.stream_request_s + request_bytes / parameters.stream_bytes_per_s)

    def gathered_request(self, pattern: Pattern) -> float:
        """The size of requests to servers: clients of Lustre and Spectrum Scale gather sequential small ones.

        DataWarp's clients cache nothing (NERSC16), and the emulation charges each call.
        """
        is_cached = self.storage.kind in _GATHERED and not self.storage.is_emulated
        if not is_cached or pattern.is_random or self.is_mixed(pattern):
            return pattern.transfer_bytes
        return max(pattern.transfer_bytes, min(self.gathered_bytes(), pattern.total_bytes / pattern.ranks))

    def is_mixed(self, pattern: Pattern) -> bool:
        """Whether neighbouring records in the file are of different clients.

        Clients of Lustre and Spectrum Scale are nodes. DataWarp's processes cache nothing: each is a client.
        """
        clients = pattern.ranks if self.storage.kind == "datawarp" else pattern.nodes
        return pattern.is_interleaved and pattern.access == "independent" and clients > 1

    def gathered_bytes(self) -> float:
        """What a client sends at a time: Lustre's largest request, or a block of Spectrum Scale."""
        return RPC_BYTES if self.storage.kind == "lustre" else self.storage.stripe_bytes

    def node_bytes_per_s(self) -> float:
        """Of one node to storage."""
        if self.storage.kind in LOCAL_KINDS or self.storage.is_emulated:
            return math.inf
        return self.machine.node_bytes_per_s or self.parameters.node_bytes_per_s

    def exchange_bytes_per_s(self) -> float:
        """Of one node to others: never less than to storage, which takes the same network."""
        return max(self.parameters.exchange_bytes_per_s, self.machine.node_bytes_per_s or 0.0)

    def streams(self, pattern: Pattern, processes: float, nodes: float) -> float:
        """How many processes move data at the same time.

        A Lustre client writes a file under one lock of its inode: processes of one node take turns.
        """
        is_one_file = self.storage.kind == "lustre" and pattern.access != "file-per-process"
        if is_one_file and pattern.direction == "write" and not self.storage.is_emulated:
            return min(processes, nodes)
        return processes

    def server_bytes_per_s(
        self, direction: str, request_bytes: float, is_shared: bool, is_random: bool
    ) -> float:
        """Of one server, for requests of that size to a file of many processes, or to files of their own."""
        peak = self.storage.server_bytes_per_s(direction)
        seconds_per_byte = 1 / peak
        if is_shared and not self.storage.is_emulated and self.storage.kind not in LOCAL_KINDS:
            seconds_per_byte = self._shared_s_per_byte(direction, request_bytes, peak)
        if self.storage.request_s is not None and (is_random or self.storage.is_emulated):
            seconds_per_byte += self.storage.request_s / min(request_bytes, self.storage.stripe_bytes)
        elif self.storage.kind == "datawarp" and is_random:
            seconds_per_byte = 1 / peak + self.parameters.flash_request_s / request_bytes
        return 1 / seconds_per_byte

    def _shared_s_per_byte(self, direction: str, request_bytes: float, peak: float) -> float:
        parameters = self.parameters
        if direction == "read":
            return 1 / (peak * parameters.shared_read_fraction)
        if self.storage.kind == "datawarp":
            return 1 / (peak * parameters.flash_shared_fraction) + parameters.flash_lock_s / request_bytes
        return 1 / peak + parameters.lustre_lock_s / request_bytes

    def switch_s(self) -> float:
        """Of one lock between clients. DataWarp's clients cache nothing: no lock moves (NERSC16)."""
        if self.storage.switch_s is not None:
            return self.storage.switch_s
        return self.parameters.switch_s if self.storage.kind in ("lustre", "spectrum-scale") else 0.0

    def open_s(self, opens: int, processes: int, objects: int) -> float:
        """Of `opens` openings by so many processes, each of which waits for its own.

        One metadata server does all of them; Spectrum Scale's servers all do it (OLCF18). `objects` are the
        stripes that it looks up on Lustre, over all openings.
        """
        storage = self.storage
        of_process = opens / processes
        if storage.kind in LOCAL_KINDS:
            return of_process * LOCAL_OPEN_S
        busy_s = opens * (self.parameters.open_s if storage.operation_s is None else 2 * storage.operation_s)
        if storage.kind == "spectrum-scale":
            busy_s /= storage.servers
        elif storage.kind == "lustre":
            busy_s += objects * (
                self.parameters.open_stripe_s if storage.stripe_s is None else storage.stripe_s
            )
        return max(busy_s, 0.0 if storage.is_emulated else of_process * self.parameters.stream_request_s)


def predict(
    pattern: Pattern, machine: Machine, storage: Storage, settings: Settings, parameters: Parameters
) -> Prediction:
    """How long the pattern takes. `check_fits` of fit.py refuses what does not fit the machine."""
    rates = Rates(machine=machine, storage=storage, parameters=parameters)
    if pattern.access == "collective":
        return _collective(pattern, settings, rates)
    return _direct(pattern, settings, rates)


def _direct(pattern: Pattern, settings: Settings, rates: Rates) -> Prediction:
    """Serial, file per process, and independent calls on a shared file."""
    is_own_file = pattern.access == "file-per-process"
    writers = pattern.writers
    nodes = min(pattern.nodes, writers)
    request = rates.gathered_request(pattern)
    moved, changes = pattern.total_bytes, 0.0
    # Clients of Lustre and Spectrum Scale are nodes: processes of one node share its locks.
    is_shared = writers > 1 and not is_own_file and (nodes > 1 or rates.storage.kind == "datawarp")
    is_mixed = rates.is_mixed(pattern)
    if is_mixed and pattern.direction == "write":
        request, moved, changes = _interleaved(pattern, settings)
    used = _window(pattern, settings) if is_mixed else _servers_in_use(pattern, settings, request, writers)
    locks_s = changes * rates.switch_s() / used
    server = rates.server_bytes_per_s(
        pattern.direction,
        min(request, settings.stripe_bytes),
        is_shared,
        pattern.is_random,
    )
    resources = {
        "streams": moved / (rates.streams(pattern, writers, nodes) * rates.stream_bytes_per_s(request)),
        "nodes": moved / (nodes * rates.node_bytes_per_s()),
        "servers": moved / (used * server),
        "locks": locks_s,
    }
    storage_s = _shared(resources, settings, rates)
    gathered = _gather_s(pattern, rates) if pattern.access == "serial" else 0.0
    opens = pattern.files if is_own_file else writers
    stripes = settings.stripe_count or (1 if is_own_file else settings.servers)
    # A client keeps the layout of a file for all processes of its node. The emulation charges each opening.
    lookups = opens if is_own_file or rates.storage.is_emulated else nodes
    opened = rates.open_s(opens, writers, lookups * stripes)
    return _prediction(pattern, opened, 0.0, gathered, resources, storage_s)


def _servers_in_use(pattern: Pattern, settings: Settings, request_bytes: float, writers: int) -> float:
    """Servers that work at the same time, as many as are equally busy.

    One request is on so few servers at a time; many processes are on all. Lustre deals the objects of files
    to its OSTs in turn: where one OST has two objects and another has one, the fuller one ends last.
    """
    of_file = settings.stripe_count or settings.servers
    at_once = spread(request_bytes, settings.stripe_bytes, of_file).active * writers
    if settings.stripe_count is None:
        return min(settings.servers, at_once)
    objects = pattern.files * settings.stripe_count
    return min(objects / math.ceil(objects / settings.servers), at_once)


def _window(pattern: Pattern, settings: Settings) -> float:
    """Servers that work at the same time, where all ranks are in one window of the file: a record of each."""
    window = min(pattern.total_bytes, pattern.transfer_bytes * pattern.ranks)
    return spread(window, settings.stripe_bytes, settings.stripe_count or settings.servers).active


def _gather_s(pattern: Pattern, rates: Rates) -> float:
    """Of all data to the one rank that writes: nothing if it has them."""
    return pattern.total_bytes / rates.exchange_bytes_per_s() if pattern.ranks > 1 else 0.0


def _interleaved(pattern: Pattern, settings: Settings) -> tuple[float, float, float]:
    """(request, bytes moved, changes of lock owner) of writes whose neighbours in the file are other ranks'.

    Each request takes a lock that another client holds. Data sieving reads, changes and writes the whole
    extent around its pieces (CRAY12): it moves the data of the other ranks twice, and holds the lock.
    """
    if settings.data_sieving and pattern.transfer_bytes < SIEVE_BYTES:
        pieces = max(1.0, SIEVE_BYTES / (pattern.transfer_bytes * pattern.ranks))
        moved = 2 * pattern.total_bytes * SIEVE_BYTES / (pieces * pattern.transfer_bytes)
        return SIEVE_BYTES, moved, moved / 2 / SIEVE_BYTES
    requests = pattern.total_bytes / pattern.transfer_bytes
    changes = requests if pattern.transfer_bytes < settings.stripe_bytes else 0.0
    return pattern.transfer_bytes, pattern.total_bytes, changes


def _collective(pattern: Pattern, settings: Settings, rates: Rates) -> Prediction:
    """Two-phase I/O: in each call ranks send to aggregators, and aggregators write."""
    parameters = rates.parameters
    aggregators = min(settings.aggregators, pattern.ranks)
    synchronisation = exchange = 0.0
    resources = dict.fromkeys(("streams", "nodes", "servers", "locks"), 0.0)
    storage_s = 0.0
    for calls in pattern.collective_calls:
        over = _over_aggregators(calls.total_bytes, settings, aggregators)
        cycles = max(1.0, over.share * calls.total_bytes / min(settings.stripe_bytes, settings.buffer_bytes))
        per_rank = parameters.collective_rank_s + cycles * parameters.cycle_rank_s
        synchronisation += calls.count * pattern.ranks * per_rank
        exchange += calls.count * _exchange_s(calls.total_bytes, over, pattern, rates)
        of_call = _write_phase(calls.total_bytes, over, pattern, settings, rates)
        storage_s += calls.count * _shared(of_call, settings, rates)
        for name, seconds in of_call.items():
            resources[name] += calls.count * seconds
    opened = rates.open_s(pattern.ranks, pattern.ranks, pattern.ranks * settings.servers)
    return _prediction(pattern, opened, synchronisation, exchange, resources, storage_s)


def _over_aggregators(call_bytes: float, settings: Settings, aggregators: int) -> Spread:
    """CB_ALIGN 0 cuts equal parts, 1 rounds them to stripes, 2 deals stripes in turn (CRAY12)."""
    piece = min(settings.stripe_bytes, settings.buffer_bytes)
    if settings.cb_align == 0:
        return even(call_bytes, aggregators, settings.buffer_bytes)
    over = spread(call_bytes, settings.stripe_bytes, aggregators)
    return Spread(share=over.share, active=over.active, request_bytes=min(piece, over.request_bytes))


def _exchange_s(call_bytes: float, over: Spread, pattern: Pattern, rates: Rates) -> float:
    """One aggregator sorts its segments; the aggregators of one node share its network.

    What an aggregator has itself is not sent: a single rank exchanges nothing.
    """
    parameters = rates.parameters
    volume = call_bytes * (pattern.ranks if pattern.is_replicated else 1)
    segment = call_bytes if pattern.is_replicated else pattern.segment_bytes or pattern.transfer_bytes
    received = min(1.0, over.share * math.ceil(over.active / pattern.nodes))
    sent = 1 - 1 / pattern.ranks
    moved_s = sent * (received + 1 / pattern.nodes) * volume / rates.exchange_bytes_per_s()
    return moved_s + over.share * max(1.0, volume / segment) * parameters.segment_s


def _write_phase(
    call_bytes: float, over: Spread, pattern: Pattern, settings: Settings, rates: Rates
) -> dict[str, float]:
    """The times of the resources in the system calls of one collective call."""
    on_servers = spread(call_bytes, settings.stripe_bytes, settings.servers)
    request = over.request_bytes
    is_shared = _has_several_writers(pattern, settings)
    server = rates.server_bytes_per_s(pattern.direction, request, is_shared, pattern.is_random)
    active_per_node = math.ceil(over.active / pattern.nodes)
    of_node = min(1.0, over.share * active_per_node)
    in_turn = over.share * over.active / rates.streams(pattern, over.active, pattern.nodes)
    locks = 0.0
    if pattern.direction == "write":
        locks = _lock_changes(call_bytes, over, settings, rates) * rates.switch_s() / settings.servers
    return {
        "streams": min(1.0, in_turn) * call_bytes / rates.stream_bytes_per_s(request),
        "nodes": of_node * call_bytes / rates.node_bytes_per_s(),
        "servers": on_servers.share * call_bytes / server,
        "locks": locks,
    }


def _has_several_writers(pattern: Pattern, settings: Settings) -> bool:
    """Whether several aggregators use one server.

    CB_ALIGN 2 deals stripes to aggregators in turn, as the file does to servers. So a server has one
    aggregator if the aggregators divide the servers. Its first request then locks all that the server has of
    the file: Lustre extends a lock as far as no other client has one.
    """
    aggregators = min(settings.aggregators, pattern.ranks)
    return aggregators > 1 and (settings.cb_align != 2 or settings.servers % aggregators != 0)


def _lock_changes(call_bytes: float, over: Spread, settings: Settings, rates: Rates) -> float:
    """How often a lock moves in one call.

    Aggregators that share a stripe (CB_ALIGN 0) meet at their borders. Without a fixed owner (CB_ALIGN 1),
    the lock of each OST moves once in a call. More aggregators than OSTs share each OST, where only one
    process at a time holds the lock (CRAY12): it moves with each request.
    """
    if rates.storage.kind == "lustre" and over.active > settings.servers:
        return call_bytes / over.request_bytes
    if rates.storage.kind == "lustre" and settings.cb_align == 1:
        return settings.servers
    return over.active - 1 if settings.cb_align == 0 else 0.0


def _shared(resources: dict[str, float], settings: Settings, rates: Rates) -> float:
    """With other jobs on the same servers, which share them equally.

    Even where servers are not the limit, jobs meet in queues and in the network: OLCF18 says that users share
    the performance. Local storage has no other users.
    """
    alone = _together(resources)
    if settings.jobs == 1 or rates.storage.kind in LOCAL_KINDS:
        return alone
    equal = _together(
        {
            name: seconds * settings.jobs if name in ("servers", "locks") else seconds
            for name, seconds in resources.items()
        }
    )
    return max(equal, alone * (1 + rates.parameters.interference * (settings.jobs - 1)))


def _together(resources: dict[str, float]) -> float:
    """The norm of all; a server does nothing while the lock of its data moves, so these times add."""
    parallel = resources["streams"], resources["nodes"], resources["servers"] + resources["locks"]
    longest = max(parallel)
    return longest * sum((seconds / longest) ** NORM for seconds in parallel) ** (1 / NORM)


def _prediction(
    pattern: Pattern,
    open_s: float,
    synchronisation_s: float,
    exchange_s: float,
    resources: dict[str, float],
    storage_s: float,
) -> Prediction:
    return Prediction(
        seconds=open_s + synchronisation_s + exchange_s + storage_s,
        open_s=open_s,
        synchronisation_s=synchronisation_s,
        exchange_s=exchange_s,
        storage_s=storage_s,
        bound_by=max(resources, key=lambda name: resources[name]),
        total_bytes=pattern.total_bytes,
    )
