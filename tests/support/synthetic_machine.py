"""A made-up machine for tests of the search: times of collective writing as two-phase I/O and striping have it.

Shaped like what was measured on the emulated file system: more aggregators help until targets or their locks are
the limit, small buffers cost latency, and collective buffering helps interleaved files and harms contiguous ones.
"""

import itertools
import random

from forebay.tune.model import Configuration, Guess, Machine, key

from support.plans import parameter

MIB = 1 << 20
RANKS = 8
FILE = "out"
NODES, BUFFER, COLLECTIVE = f"{FILE}:cb_nodes", f"{FILE}:cb_buffer_size", f"{FILE}:romio_cb_write"
SIEVING, COUNT, SIZE = f"{FILE}:romio_ds_write", "lfs_stripe_count", "lfs_stripe_size"
VALUES = {
    COUNT: ("2", "4", "8"),
    SIZE: (str(4 * MIB),),
    NODES: ("2", "4", "8"),
    BUFFER: (str(MIB), str(4 * MIB)),
    COLLECTIVE: ("enable", "disable"),
    SIEVING: ("disable",),
}
ORDERED = {COUNT, SIZE, NODES, BUFFER}
GUESSES = (
    {NODES: "8"},
    {NODES: "8", COUNT: "8"},
    {COLLECTIVE: "disable", SIEVING: "disable"},
    {NODES: "4", BUFFER: str(4 * MIB), COUNT: "4"},
    {COUNT: "8"},
)


PARAMETERS = tuple(parameter(name, *values, ordered=name in ORDERED) for name, values in VALUES.items())
MACHINE = Machine(ranks=RANKS, nodes=1, mpi="made up")


def acting(configuration: Configuration) -> Configuration:
    """Aggregators and their buffer act with collective buffering only, sieving only without."""
    off = configuration.get(COLLECTIVE) == "disable"
    idle = {NODES, BUFFER} if off else {SIEVING}
    return {name: value for name, value in configuration.items() if name not in idle}


def configurations() -> list[Configuration]:
    """All that differ in effect."""
    rows = itertools.product(*((None, *values) for values in VALUES.values()))
    all_of_them = [{n: v for n, v in zip(VALUES, row, strict=True) if v is not None} for row in rows]
    return list({key(one): one for one in map(acting, all_of_them)}.values())


class SyntheticMachine:
    """One machine and one application, drawn from a seed."""

    def __init__(self, seed: int):
        draw = random.Random(f"surface {seed}")
        self.mib = draw.uniform(40, 200)
        self.client = draw.uniform(30, 150)  # MiB/s of one process
        self.target = draw.uniform(40, 200)  # MiB/s of one target
        self.latency_s = draw.uniform(20e-6, 400e-6)
        self.exchange = draw.uniform(100, 1000)  # MiB/s through the network of two phases
        self.interleaved = draw.random() < 0.7
        self.block_kib = 2 ** draw.uniform(0, 4) if self.interleaved else 2 ** draw.uniform(9, 12)
        self.locks = draw.uniform(0.02, 0.4)  # what each process too many on a target costs
        self.targets = draw.choice([1, 4, 4, 8])
        self.wobble = {key(one): draw.gauss(0, 0.02) for one in configurations()}

    def seconds(self, configuration: Configuration) -> float:
        """The true time of a configuration."""
        one = acting(configuration)
        targets = min(int(one.get(COUNT, self.targets)), 8)
        stripe = float(one.get(SIZE, MIB)) / MIB
        setting = one.get(COLLECTIVE, "automatic")
        collective = setting == "enable" or (setting == "automatic" and self.interleaved)
        time = self._collective(one, targets, stripe) if collective else self._independent(one, targets)
        return time * (1 + self.wobble.get(key(one), 0.0))

    def _bandwidth(self, writers: int, targets: int) -> float:
        crowded = 1 + self.locks * max(writers / targets - 1, 0)
        return min(writers * self.client, targets * self.target / crowded)

    def _collective(self, one: Configuration, targets: int, stripe: float) -> float:
        writers = int(one.get(NODES, 1))
        buffer = float(one.get(BUFFER, 16 * MIB)) / MIB
        calls = self.mib / min(buffer, max(stripe, 1)) / writers
        rounds = self.mib / (buffer * writers)
        exchange = self.mib / self.exchange + rounds * 2e-3
        return 0.01 + self.mib / self._bandwidth(writers, targets) + calls * self.latency_s * 4 + exchange

    def _independent(self, one: Configuration, targets: int) -> float:
        calls = self.mib * 1024 / self.block_kib / RANKS
        if self.interleaved and one.get(SIEVING) != "disable":
            return 0.01 + 3.8 * self.mib / self._bandwidth(RANKS, targets) + self.mib * self.latency_s
        return 0.01 + self.mib / self._bandwidth(RANKS, targets) + calls * self.latency_s


def guesses() -> tuple[Guess, ...]:
    """As the rules would make them."""
    return tuple(Guess(configuration=one, reason="a rule") for one in GUESSES)
