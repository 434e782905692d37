"""Which settings are best on a storage: all sensible ones are tried against the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from forebay.plan import striping
from forebay.plan.allocation import Allocation, Pool, pool_of
from forebay.plan.errors import PlanError
from forebay.plan.in_script import FileSettings, ScriptSettings
from forebay.plan.limits import check_settings
from forebay.plan.machine import Machine, Storage
from forebay.plan.model import Prediction, predict
from forebay.plan.parameters import Parameters
from forebay.plan.pattern import BUFFER_BYTES, Pattern, Settings

#: A number of servers that is so many times faster than the cheapest one is shown next to it.
FASTER_FROM = 1.10
#: Kinds of storage where a job chooses the number of servers.
CHOSEN = ("datawarp", "lustre")
#: Settings of one server count that differ by less are equal: fewer aggregators, then the default stripe.
EQUAL_WITHIN = 1.02
#: Stripe units to try, as multiples of the default: DataWarp's from an eighth, as ExpBB does (KAUST18).
_STRIPES = {"datawarp": (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1), "lustre": (1, 2, 4, 8, 16)}
_STRIPE_BYTES_MIN = 1 << 16


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that the user gives; None: to be chosen."""

    servers: int | None = None
    aggregators: int | None = None
    stripe_bytes: int | None = None
    buffer_bytes: int | None = None
    cb_align: int | None = None
    data_sieving: bool = False
    jobs: int = 1


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one number of servers, and what the model says of each pattern."""

    servers: int
    settings: list[Settings]  # of each pattern
    predictions: list[Prediction]  # of each pattern

    @property
    def io_s(self) -> float:
        """Of all patterns, one after the other."""
        return sum(one.seconds for one in self.predictions)


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's I/O costs, in node-seconds."""

    compute_node_s: float  # of compute nodes that wait for the I/O
    storage_node_s: float  # of servers while they do the I/O, and of capacity that is held

    @property
    def node_s(self) -> float:
        """Of all nodes."""
        return self.compute_node_s + self.storage_node_s


class Searcher(msgspec.Struct, frozen=True, kw_only=True):
    """One storage of a machine, patterns that share it, and what is given."""

    machine: Machine
    storage: Storage
    patterns: Sequence[Pattern]
    fixed: Fixed
    parameters: Parameters
    capacity_bytes: int = 0  # that the job needs at least
    compute_s: float = 0.0  # of the job, besides I/O
    script: ScriptSettings | None = None  # None: there is none, or it sets nothing

    def pool(self) -> Pool | None:
        """The pool of a storage that gives granules."""
        return pool_of(self.storage)

    @property
    def nodes(self) -> int:
        """Compute nodes of the job."""
        return max(pattern.nodes for pattern in self.patterns)

    def server_counts(self) -> list[int]:
        """Numbers of servers to try: the least, then powers of two, which divide most numbers of ranks."""
        if self.fixed.servers is not None:
            return [self._of_all(self.fixed.servers) if self._all_spread() else self.fixed.servers]
        if self.storage.kind == "node-local":
            return [self.nodes]
        if self.storage.kind in ("spectrum-scale", "directory"):
            return [self.storage.servers]
        if self._all_spread():
            return sorted({count for pattern in self.patterns for count in self._counts_of_files(pattern)})
        least = self._servers_min()
        most = min(self.storage.servers, self.storage.stripe_count_max)
        counts = {least} | {1 << power for power in range(least.bit_length(), most.bit_length())}
        return sorted(counts if self.storage.kind == "datawarp" else {*counts, most})

    def _is_spread(self, pattern: Pattern) -> bool:
        """Whether Lustre spreads the files of the pattern over its OSTs."""
        return self.storage.kind == "lustre" and pattern.access == "file-per-process"

    def _all_spread(self) -> bool:
        return all(self._is_spread(pattern) for pattern in self.patterns)

    def _of_all(self, stripe_count: int) -> int:
        """The OSTs that files with so many stripes are on."""
        files = max(pattern.files for pattern in self.patterns)
        return min(self.storage.servers, files * stripe_count)

    def _counts_of_files(self, pattern: Pattern) -> set[int]:
        """The OSTs that files of their own are on, for each stripe count that is worth a trial.

        CRAY12: one stripe if there are more files than OSTs, else at most as many as use all OSTs. A process
        is on at most four OSTs.
        """
        stripes_max = striping.lustre_stripe_count(
            pattern.files, self.storage.servers, pattern.ranks, self.storage.stripe_count_max
        )
        processes = -(-pattern.ranks // pattern.files)
        most = min(stripes_max, striping.OSTS_PER_PROCESS_MAX * processes)
        counts = {most} | {1 << power for power in range(most.bit_length())}
        return {min(self.storage.servers, pattern.files * count) for count in counts}

    def _stripe_count_on(self, pattern: Pattern, servers: int) -> int:
        """The stripes of each file that put files of their own on so many OSTs."""
        return self.fixed.servers or max(1, min(servers // pattern.files, self.storage.stripe_count_max))

    def _servers_min(self) -> int:
        pool = self.pool()
        return pool.allocate(self.capacity_bytes).nodes if pool and self.capacity_bytes else 1

    def _servers_asked(self) -> int:
        """DataWarp nodes of the script's capacity, or of what the data need."""
        pool, asked = self.pool(), self.script.capacity_bytes if self.script else 0
        return pool.allocate(asked).nodes if pool and asked else self._servers_min()

    def default(self) -> Trial:
        """Without hints: the storage's default layout, and the MPI's default aggregators."""
        servers = self._servers_asked() if self.storage.kind == "datawarp" else self.storage.stripe_count
        if self.storage.kind == "node-local":
            servers = self.nodes
        if self._all_spread():
            servers = self._of_all(servers)
        stripe_count = self.storage.stripe_count
        return self._trial(servers, [self._default_of(one, servers, stripe_count) for one in self.patterns])

    def default_on(self, servers: int) -> Trial:
        """Without hints, on so many servers."""
        return self._trial(servers, [self._default_on(pattern, servers) for pattern in self.patterns])

    def given(self) -> Trial:
        """As the user gives it; what is not given is the default."""
        plain = self.default() if self.fixed.servers is None else self.default_on(self.server_counts()[0])
        return self._trial(plain.servers, [_with_fixed(one, self.fixed) for one in plain.settings])

    def script_trial(self) -> Trial | None:
        """As the script has it, but for settings that are fixed; None if it sets nothing for this storage.

        Raises PlanError for settings that the storage does not have.
        """
        if self.script is None:
            return None
        found = [self.script.for_pattern(pattern) for pattern in self.patterns]
        is_allocated = self.storage.kind == "datawarp" and self.script.capacity_bytes > 0
        if not is_allocated and not any(self._has_effect(one) for one in found):
            return None
        parts = [self._script_settings_for(*pair) for pair in zip(self.patterns, found, strict=True)]
        return self._trial(max(one.servers for one in parts), parts)

    def _has_effect(self, one: FileSettings) -> bool:
        return self._fixed_for(one, None) != self._fixed_for(FileSettings(), None)

    def _fixed_for(self, one: FileSettings, servers: int | None) -> Fixed:
        """The script's settings for a file; those that are fixed by the user count before them."""
        fixed, is_lustre = self.fixed, self.storage.kind == "lustre"
        counts = one.stripe_count or one.directory_stripe_count if is_lustre else None
        if counts is not None and counts < 0:
            counts = min(self.storage.servers, self.storage.stripe_count_max)
        units = one.stripe_bytes or (one.directory_stripe_bytes if is_lustre else None)
        return msgspec.structs.replace(
            fixed,
            servers=fixed.servers or counts or servers,
            aggregators=fixed.aggregators or one.aggregators,
            stripe_bytes=fixed.stripe_bytes or (units if self.storage.kind in _STRIPES else None),
            buffer_bytes=fixed.buffer_bytes or one.buffer_bytes,
            cb_align=one.cb_align if fixed.cb_align is None else fixed.cb_align,
            data_sieving=fixed.data_sieving or bool(one.data_sieving),
        )

    def _script_settings_for(self, pattern: Pattern, one: FileSettings) -> Settings:
        kind = self.storage.kind
        plain = {"datawarp": self._servers_asked(), "lustre": self.storage.stripe_count}
        fixed = self._fixed_for(
            one, plain.get(kind, self.nodes if kind == "node-local" else self.storage.servers)
        )
        as_set = msgspec.structs.replace(self, fixed=fixed)
        return _with_fixed(as_set._default_on(pattern, fixed.servers or 1), fixed)

    def trials(self) -> list[Trial]:
        """The best settings for each number of servers."""
        return [self.best_on(servers) for servers in self.server_counts()]

    def best_on(self, servers: int) -> Trial:
        """The best settings on so many servers."""
        chosen = [self._best_of(pattern, servers) for pattern in self.patterns]
        return self._trial(servers, chosen)

    def values_to_try(self, servers: int) -> tuple[list[int], list[int]]:
        """Aggregators and stripe units of the first pattern that are worth a trial on so many servers."""
        given = self._given_on(self.patterns[0], servers)
        return self._aggregators(self.patterns[0], given), self._stripes(given)

    def allocation(self, servers: int) -> Allocation | None:
        """A granule of each of so many nodes, or more if the data need it; None without granules."""
        pool = self.pool()
        return pool.allocate(max(pool.capacity_for(servers), self.capacity_bytes)) if pool else None

    def held_nodes(self, servers: int) -> float:
        """Storage nodes whose capacity the job holds while it computes: granules over the granules of a node.

        Nodes of a pool whose capacity is not known count as a whole. Other storages hold nothing for a job.
        """
        granted = self.allocation(servers)
        if granted is None:
            return 0.0
        pool = self.pool()
        per_node = pool.granules_per_node if pool else None
        return granted.granules / per_node if per_node else float(granted.nodes)

    def working_nodes(self, servers: int) -> int:
        """Servers that count while the I/O runs: those whose number a job chooses.

        More files than OSTs are on all OSTs, whatever a job asks for.
        """
        is_on_all = self._all_spread() and all(one.files >= self.storage.servers for one in self.patterns)
        return 0 if self.storage.kind not in CHOSEN or is_on_all else servers

    def price(self, servers: int, io_s: float) -> Price:
        """Compute nodes and servers while the I/O runs, and held capacity while the job computes."""
        held = self.held_nodes(servers) * self.compute_s
        return Price(
            compute_node_s=self.nodes * io_s, storage_node_s=self.working_nodes(servers) * io_s + held
        )

    def price_of(self, trial: Trial) -> Price:
        """The same of a trial."""
        return self.price(trial.servers, trial.io_s)

    def recommend(self, trials: Iterable[Trial]) -> Trial:
        """The fewest node-seconds; of equal prices, the fewest servers."""
        return min(trials, key=lambda one: (self.price_of(one).node_s, one.servers))

    def faster(self, trials: Iterable[Trial], best: Trial) -> Trial | None:
        """The fastest, if it is clearly faster than `best`, which costs fewer node-seconds.

        Of numbers that are equally fast it is the fewest.
        """
        found = list(trials)
        limit = EQUAL_WITHIN * min(one.io_s for one in found)
        fastest = min((one for one in found if one.io_s <= limit), key=lambda one: one.servers)
        return fastest if best.io_s >= FASTER_FROM * fastest.io_s else None

    def _trial(self, servers: int, settings: list[Settings]) -> Trial:
        predictions = [self._predict(*pair) for pair in zip(self.patterns, settings, strict=True)]
        return Trial(servers=servers, settings=settings, predictions=predictions)

    def _predict(self, pattern: Pattern, settings: Settings) -> Prediction:
        check_settings(pattern, self.storage, settings)
        return predict(pattern, self.machine, self.storage, settings, self.parameters)

    def _default_on(self, pattern: Pattern, servers: int) -> Settings:
        return self._default_of(pattern, servers, self._stripe_count_on(pattern, servers))

    def _default_of(self, pattern: Pattern, servers: int, stripe_count: int) -> Settings:
        """Files of their own are on all servers that their stripes reach, another file is on `servers`."""
        is_spread = self._is_spread(pattern)
        if is_spread:
            servers = min(self.storage.servers, pattern.files * stripe_count)
        aggregators = striping.aggregators_default(
            self.storage.kind, ranks=pattern.ranks, nodes=pattern.nodes, servers=servers
        )
        return Settings(
            servers=servers,
            stripe_bytes=self.storage.stripe_bytes,
            stripe_count=stripe_count if is_spread else None,
            aggregators=aggregators,
            data_sieving=self.fixed.data_sieving,
            jobs=self.fixed.jobs,
        )

    def _given_on(self, pattern: Pattern, servers: int) -> Settings:
        """As the user fixes it. What nobody searches, such as the buffer size, is as the script has it."""
        default, fixed = self._default_on(pattern, servers), self.fixed
        if self.script is not None:
            kept = self._fixed_for(self.script.for_pattern(pattern), None)
            fixed = msgspec.structs.replace(
                fixed, buffer_bytes=kept.buffer_bytes, cb_align=kept.cb_align, data_sieving=kept.data_sieving
            )
        return _with_fixed(default, fixed)

    def _best_of(self, pattern: Pattern, servers: int) -> Settings:
        given = self._given_on(pattern, servers)
        options = [
            msgspec.structs.replace(given, aggregators=aggregators, stripe_bytes=stripe)
            for aggregators in self._aggregators(pattern, given)
            for stripe in self._stripes(given)
        ]
        times = {option: self._predict(pattern, option).seconds for option in options}
        limit = EQUAL_WITHIN * min(times.values())
        near = [option for option in options if times[option] <= limit]
        return min(near, key=lambda one: self._preference(pattern, one))

    def _preference(self, pattern: Pattern, one: Settings) -> tuple[int, int, int]:
        """Of equal settings: those that balance, with few aggregators, and the default stripe."""
        is_collective = pattern.access == "collective"
        unbalanced = self.imbalance(pattern, one) if is_collective else []
        distance = abs(one.stripe_bytes - self.storage.stripe_bytes)
        return len(unbalanced), one.aggregators, distance

    def imbalance(self, pattern: Pattern, one: Settings) -> list[str]:
        """What is unbalanced. Only on DataWarp do servers and aggregators belong together (KAUST18)."""
        servers = one.servers if self.storage.kind == "datawarp" else one.aggregators
        return striping.imbalance(pattern.ranks, one.aggregators, servers)

    def _aggregators(self, pattern: Pattern, given: Settings) -> list[int]:
        """Those that balance (KAUST18), and the default. On Lustre, each OST has one aggregator (CRAY12)."""
        if pattern.access != "collective" or self.fixed.aggregators is not None:
            return [given.aggregators]
        if self.storage.kind == "lustre":
            shares = {given.servers >> power for power in range(3)}
            return sorted({given.aggregators, *(one for one in shares if 0 < one <= pattern.ranks)})
        unit = given.servers if self.storage.kind == "datawarp" else pattern.nodes
        balanced = striping.aggregator_counts(pattern.ranks, unit)
        doubled = [unit << power for power in range(8) if unit << power <= pattern.ranks // 2]
        return sorted({given.aggregators, *_thinned(balanced), *doubled})

    def _stripes(self, given: Settings) -> list[int]:
        if self.fixed.stripe_bytes is not None or self.storage.kind not in _STRIPES:
            return [given.stripe_bytes]
        sizes = (int(self.storage.stripe_bytes * factor) for factor in _STRIPES[self.storage.kind])
        return sorted({max(_STRIPE_BYTES_MIN, size) for size in sizes})


def _with_fixed(default: Settings, fixed: Fixed) -> Settings:
    return msgspec.structs.replace(
        default,
        aggregators=fixed.aggregators or default.aggregators,
        stripe_bytes=fixed.stripe_bytes or default.stripe_bytes,
        buffer_bytes=fixed.buffer_bytes or BUFFER_BYTES,
        cb_align=default.cb_align if fixed.cb_align is None else fixed.cb_align,
        data_sieving=fixed.data_sieving,
    )


def _thinned(counts: list[int]) -> list[int]:
    """Of counts closer than a factor of 1.5, one is enough."""
    kept: list[int] = []
    for count in counts:
        if not kept or count >= 1.5 * kept[-1] or count == counts[-1]:
            kept.append(count)
    return kept


def check_capacity(storage: Storage, capacity_bytes: int) -> None:
    """Raises PlanError if the storage cannot give so much."""
    pool = pool_of(storage)
    if pool:
        pool.granules(capacity_bytes)
    elif storage.capacity_bytes is not None and capacity_bytes > storage.capacity_bytes:
        raise PlanError(
            f"{storage.name} holds {storage.capacity_bytes:.3g} bytes, and --capacity is {capacity_bytes}",
            "ask for less",
        )
