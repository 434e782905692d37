"""The jobs of a simulation, one array for each quantity, in the order of submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forebay.simulate.distributions import Distribution, Kind, draw
from forebay.simulate.errors import SimulationError
from forebay.simulate.site import COUNT_MAX, PAGE, Drawn, JobClass

if TYPE_CHECKING:
    import numpy as np

#: Fields of a class of jobs, and what they are.
_KINDS: dict[str, Kind] = {
    "nodes": "count", "run_time": "time", "limit_factor": "factor", "capacity": "size", "stage_in": "size",
    "stage_out": "size", "io": "size",
}  # fmt: skip


class Jobs(msgspec.Struct, kw_only=True):
    """All of one length. `capacity_bytes` holds what is staged."""

    submit_s: np.ndarray
    nodes: np.ndarray  # int64
    run_s: np.ndarray
    limit_s: np.ndarray  # requested, at least run_s
    capacity_bytes: np.ndarray
    stage_in_bytes: np.ndarray
    stage_out_bytes: np.ndarray
    io_bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.submit_s)


def draw_jobs(of: Drawn, jobs: int, seed: int, repetition: int) -> Jobs:
    """Draws jobs; a seed and a repetition always draw the same. SimulationError if a parameter is wrong."""
    import numpy as np

    random = np.random.default_rng([seed, repetition])
    submit_s = np.cumsum(_drawn("workload.interval", of.interval, "time", random, jobs))
    shares = np.array([one.share for one in of.classes])
    if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
        raise SimulationError("workload.class: the shares are not all above zero", PAGE)
    kinds = random.choice(len(shares), jobs, p=shares / shares.sum())
    fields = {name: np.zeros(jobs) for name in _KINDS}
    for number, one in enumerate(of.classes):
        mine = np.flatnonzero(kinds == number)
        for name, values in _of_class(one, random, len(mine)).items():
            fields[name][mine] = values
    return make_jobs(submit_s, fields)


def _of_class(one: JobClass, random: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    where = f"workload.class {one.name!r}"
    return {
        name: _drawn(f"{where}: {name}", getattr(one, name), kind, random, count)
        for name, kind in _KINDS.items()
    }


def _drawn(where: str, of: Distribution, kind: Kind, random: np.random.Generator, count: int) -> np.ndarray:
    try:
        return draw(of, kind, random, count)
    except ValueError as error:
        raise SimulationError(f"{where}: {error}", PAGE) from error


def make_jobs(submit_s: np.ndarray, fields: dict[str, np.ndarray]) -> Jobs:
    """Jobs from the fields of a class. A job has at least one node and a capacity for what it stages."""
    import numpy as np

    staged = np.maximum(fields["stage_in"], fields["stage_out"])
    return Jobs(
        submit_s=submit_s,
        nodes=np.clip(fields["nodes"], 1, COUNT_MAX).astype(np.int64),
        run_s=fields["run_time"],
        limit_s=fields["run_time"] * np.maximum(1.0, fields["limit_factor"]),
        capacity_bytes=np.maximum(fields["capacity"], staged),
        stage_in_bytes=fields["stage_in"],
        stage_out_bytes=fields["stage_out"],
        io_bytes=fields["io"],
    )
