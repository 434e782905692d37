"""Where the granules of an allocation are: DataWarp's round robin over servers."""

from __future__ import annotations

import numpy as np

from forebay.simulate.site import Pool


class Servers:
    """The granules of a pool, by server.

    An allocation gets a granule of each server in turn, and begins where the one before ended. If it has more
    granules than there are servers, servers have several, and it is only as fast as the fullest server.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.free = np.full(pool.servers, pool.granules_per_server, dtype=np.int64)
        self._io = np.zeros(pool.servers, dtype=np.int64)  # granules of jobs that do I/O now
        self._next = 0

    def allocate(self, granules: int) -> np.ndarray:
        """Granules of the allocation on each server; there must be as many free ones."""
        servers = self.pool.servers
        counts = np.zeros(servers, dtype=np.int64)
        order = np.arange(self._next, self._next + servers) % servers
        while granules > 0:
            active = order[self.free[order] > counts[order]]
            rounds = min(granules // len(active), int((self.free[active] - counts[active]).min()))
            taking = active if rounds else active[:granules]
            counts[taking] += max(1, rounds)
            granules -= len(taking) * max(1, rounds)
            self._next = int(taking[-1] + 1) % servers
        self.free -= counts
        return counts

    def release(self, counts: np.ndarray) -> None:
        """Gives an allocation back."""
        self.free += counts

    def alone_bytes_per_s(self, counts: np.ndarray) -> float:
        """The bandwidth of an allocation that no other job uses the servers of."""
        return float(counts.sum()) * self.pool.server_bytes_per_s / int(counts.max())

    def begin_io(self, counts: np.ndarray) -> float:
        """Counts the job's I/O; returns its bandwidth with those that do I/O on the same servers now."""
        self._io += counts
        fullest = int(self._io[counts > 0].max())
        return float(counts.sum()) * self.pool.server_bytes_per_s / fullest

    def end_io(self, counts: np.ndarray) -> None:
        """The job's I/O is over."""
        self._io -= counts
