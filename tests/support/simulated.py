"""Jobs and pools for simulations of which the answer is known."""

import numpy as np

from forebay.simulate.jobs import make_jobs
from forebay.simulate.play import simulate_jobs
from forebay.simulate.site import make_pool

GIB = 1 << 30
#: Larger than anything that is asked for.
AMPLE = 10**15


def jobs(submit_s, run_s, nodes=1, limit_factor=1.0, capacity=0.0, stage_in=0.0, stage_out=0.0, io=0.0):
    """Jobs; a number stands for all of them."""
    count = len(submit_s)

    def column(value):
        return np.broadcast_to(np.asarray(value, dtype=np.float64), count).copy()

    fields = {
        "nodes": nodes,
        "run_time": run_s,
        "limit_factor": limit_factor,
        "capacity": capacity,
        "stage_in": stage_in,
        "stage_out": stage_out,
        "io": io,
    }
    return make_jobs(np.asarray(submit_s, dtype=np.float64), {name: column(value) for name, value in fields.items()})


def pool(granules=100, servers=1, server_bytes_per_s=float(AMPLE), granule_bytes=GIB):
    """A pool of so many granules."""
    assert granules % servers == 0
    return make_pool(granules * granule_bytes, granule_bytes, servers, server_bytes_per_s)


def played(of, nodes=AMPLE, policy="fifo", of_pool=None, file_system_bytes_per_s=float(AMPLE)):
    """A play of these jobs."""
    return simulate_jobs(of, of_pool or pool(), nodes, file_system_bytes_per_s, policy)


def arrivals(random, count, rate):
    """A Poisson process with `rate` submissions a second."""
    return np.cumsum(random.exponential(1 / rate, count))


def within_confidence(means, expected, relative):
    """Whether the mean of independent means is `expected`: within four standard errors, which are small themselves."""
    means = np.asarray(means)
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert error < relative * expected, "too few jobs to tell"
    return abs(means.mean() - expected) < 4 * error
