"""One play of all jobs on a site under a policy. SimPy has the clock and the events.

A job holds its granules from the begin of its stage-in to the end of its stage-out. It holds its nodes for
all that time, or with stage-ahead for its run alone. While it runs, it shares the servers of its granules
with other jobs that do I/O there; how many these are is counted when its run begins.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
import simpy

from forebay.simulate.jobs import Jobs
from forebay.simulate.policies import Free, Policy, Queue, Request, Running
from forebay.simulate.servers import Servers
from forebay.simulate.shared_bandwidth import SharedBandwidth
from forebay.simulate.site import Pool, granules_of

if TYPE_CHECKING:
    import numpy as np

_NAN = float("nan")


class SimulatedJobs(msgspec.Struct, kw_only=True):
    """What happened: an array for each quantity, of all jobs, and of all moments when something changed."""

    submit_s: np.ndarray
    start_s: np.ndarray  # when the computation began; NaN of a rejected job
    end_s: np.ndarray  # when the last data were staged out
    nodes_held_s: np.ndarray  # for how long nodes were held
    computed_s: np.ndarray  # of that, for how long the job computed and did I/O
    staged_in_s: np.ndarray  # how long the stage-in took; NaN without one
    hidden: np.ndarray  # whether the stage-in was complete before there were nodes for the job
    granules: np.ndarray
    doubled: np.ndarray  # whether a server had more than one granule of the job
    too_large_for_pool: np.ndarray
    too_large_for_machine: np.ndarray
    changed_s: np.ndarray
    used_granules: np.ndarray  # from that moment on
    used_nodes: np.ndarray
    not_started: np.ndarray  # jobs that are submitted and do not compute yet


class _Job:
    """One job on its way."""

    __slots__ = (
        "counts", "granules", "io_bytes", "limit_s", "nodes", "number", "run_s", "running", "stage_in_bytes",
        "stage_out_bytes", "staged_s", "started_s",
    )  # fmt: skip

    def __init__(self, number: int, pool: Pool, values: tuple) -> None:
        self.number = number
        self.nodes, self.run_s, self.limit_s, capacity_bytes = values[:4]
        self.stage_in_bytes, self.stage_out_bytes, self.io_bytes = values[4:]
        self.granules = granules_of(capacity_bytes, pool)
        self.counts: np.ndarray | None = None
        self.running: Running | None = None
        self.started_s = self.staged_s = 0.0


class _Records:
    """What is written down of each job, and of each moment."""

    def __init__(self, count: int) -> None:
        self.of_jobs = {
            name: [_NAN] * count for name in ("start_s", "end_s", "nodes_held_s", "computed_s", "staged_in_s")
        }
        self.of_jobs |= {
            name: [False] * count
            for name in ("hidden", "doubled", "too_large_for_pool", "too_large_for_machine")
        }
        self.granules = [0] * count
        self.moments = {
            name: array("d") for name in ("changed_s", "used_granules", "used_nodes", "not_started")
        }

    def note(self, name: str, job: _Job, value: float | bool) -> None:
        """A quantity of a job."""
        self.of_jobs[name][job.number] = value

    def moment(self, now_s: float, used_granules: int, used_nodes: int, not_started: int) -> None:
        """What is in use from now on."""
        values = now_s, used_granules, used_nodes, not_started
        for of, value in zip(self.moments.values(), values, strict=True):
            of.append(value)


class _JobSimulator:
    def __init__(
        self, pool: Pool, nodes: int, file_system_bytes_per_s: float, policy: Policy, count: int
    ) -> None:
        self.pool, self.nodes, self.is_ahead = pool, nodes, policy == "stage-ahead"
        self.environment = simpy.Environment()
        self.file_system = SharedBandwidth(self.environment, file_system_bytes_per_s)
        self.servers, self.queue = Servers(pool), Queue(policy)
        self.free = Free(nodes, pool.granules)
        self.for_granules: deque[_Job] = deque()  # with stage-ahead: in the order of submission
        self.for_nodes: dict[int, _Job] = {}
        self.not_started = 0
        self.is_scheduling_requested = False
        self.records = _Records(count)

    def simulate_jobs(self, jobs: Jobs) -> None:
        """Until all jobs have ended."""
        self.environment.process(self._submissions(jobs))
        self.environment.run()

    def _submissions(self, jobs: Jobs) -> Iterator[simpy.Event]:
        # Python's own numbers are faster here than those of an array.
        columns = (
            jobs.nodes, jobs.run_s, jobs.limit_s, jobs.capacity_bytes, jobs.stage_in_bytes,
            jobs.stage_out_bytes, jobs.io_bytes,
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (moment_s, values) in enumerate(zip(jobs.submit_s.tolist(), rows, strict=True)):
            if moment_s > self.environment.now:
                yield self.environment.timeout(moment_s - self.environment.now)
            self._submitted(_Job(number, self.pool, values))

    def _submitted(self, job: _Job) -> None:
        self.records.granules[job.number] = job.granules
        for_pool, for_machine = job.granules > self.pool.granules, job.nodes > self.nodes
        self.records.note("too_large_for_pool", job, for_pool)
        self.records.note("too_large_for_machine", job, for_machine)
        if for_pool or for_machine:
            return
        self.not_started += 1
        if self.is_ahead and job.granules:
            self.for_granules.append(job)
            self._give_granules()
        else:
            self._wait_for_nodes(job)

    def _after(self, seconds: float, then: Callable[[], None]) -> None:
        callbacks = self.environment.timeout(seconds).callbacks
        assert callbacks is not None
        callbacks.append(lambda _event: then())

    # Granules and staging

    def _give_granules(self) -> None:
        """In the order of submission: none overtakes a job that does not fit, so that it gets its turn."""
        while self.for_granules and self.for_granules[0].granules <= self.free.granules:
            job = self.for_granules.popleft()
            self._take_granules(job)
            self._stage_in(job, lambda job=job: self._wait_for_nodes(job))
        self._request_scheduling()

    def _take_granules(self, job: _Job) -> None:
        if job.granules:
            self.free = self.free._replace(granules=self.free.granules - job.granules)
            job.counts = self.servers.allocate(job.granules)
            self.records.note("doubled", job, bool(job.counts.max() > 1))

    def _return_granules(self, job: _Job) -> None:
        if job.counts is not None:
            self.free = self.free._replace(granules=self.free.granules + job.granules)
            self.servers.release(job.counts)
            job.counts = None

    def _stage_in(self, job: _Job, then: Callable[[], None]) -> None:
        began_s = self.environment.now

        def complete() -> None:
            job.staged_s = self.environment.now
            self.records.note("staged_in_s", job, job.staged_s - began_s)
            then()

        self._copy(job, job.stage_in_bytes, complete if job.stage_in_bytes > 0 else then)

    def _copy(self, job: _Job, size_bytes: float, then: Callable[[], None]) -> None:
        if size_bytes > 0 and job.counts is not None:
            self.file_system.start(size_bytes, self.servers.alone_bytes_per_s(job.counts), then)
        else:
            then()

    # Nodes and the run

    def _wait_for_nodes(self, job: _Job) -> None:
        granules = 0 if self.is_ahead else job.granules
        self.queue.waiting[job.number] = Request(job.number, job.nodes, granules, self._expected_s(job))
        self.for_nodes[job.number] = job
        self._request_scheduling()

    def _expected_s(self, job: _Job) -> float:
        """How long the job holds its nodes by its limit, if no other job disturbs its staging and its I/O."""
        if not job.granules:
            return job.limit_s
        fullest = -(-job.granules // self.pool.servers)
        rate = job.granules * self.pool.server_bytes_per_s / fullest
        staged_bytes = 0.0 if self.is_ahead else job.stage_in_bytes + job.stage_out_bytes
        return job.limit_s + job.io_bytes / rate + staged_bytes / min(rate, self.file_system.bytes_per_s)

    def _request_scheduling(self) -> None:
        """Looks at the queue once, after all events of this moment that are known by now."""
        if not self.is_scheduling_requested:
            self.is_scheduling_requested = True
            self._after(0.0, self._start_jobs)

    def _start_jobs(self) -> None:
        self.is_scheduling_requested = False
        while (request := self.queue.next_job(self.free, self.environment.now)) is not None:
            self._start(self.for_nodes.pop(request.number), request)
        used_granules, used_nodes = self.pool.granules - self.free.granules, self.nodes - self.free.nodes
        self.records.moment(self.environment.now, used_granules, used_nodes, self.not_started)

    def _start(self, job: _Job, request: Request) -> None:
        now_s = self.environment.now
        job.started_s = now_s
        job.running = Running(now_s + request.expected_s, job.number, job.nodes, request.granules)
        self.queue.started(job.running)
        self.free = self.free._replace(nodes=self.free.nodes - job.nodes)
        if self.is_ahead:
            self.records.note("hidden", job, job.stage_in_bytes > 0 and now_s > job.staged_s)
            self._run(job)
        else:
            self._take_granules(job)
            self._stage_in(job, lambda: self._run(job))

    def _run(self, job: _Job) -> None:
        self.records.note("start_s", job, self.environment.now)
        self.not_started -= 1
        self._request_scheduling()
        seconds = job.run_s
        if job.io_bytes > 0 and job.counts is not None:
            seconds += job.io_bytes / self.servers.begin_io(job.counts)
        self.records.note("computed_s", job, seconds)
        self._after(seconds, lambda: self._end_run(job))

    def _end_run(self, job: _Job) -> None:
        if job.io_bytes > 0 and job.counts is not None:
            self.servers.end_io(job.counts)
        if self.is_ahead:
            self._return_nodes(job)
        self._copy(job, job.stage_out_bytes, lambda: self._end(job))

    def _return_nodes(self, job: _Job) -> None:
        assert job.running is not None
        self.records.note("nodes_held_s", job, self.environment.now - job.started_s)
        self.free = self.free._replace(nodes=self.free.nodes + job.nodes)
        self.queue.ended(job.running)
        self._request_scheduling()

    def _end(self, job: _Job) -> None:
        self._return_granules(job)
        if not self.is_ahead:
            self._return_nodes(job)
        self.records.note("end_s", job, self.environment.now)
        self._give_granules()


def simulate_jobs(
    jobs: Jobs, pool: Pool, nodes: int, file_system_bytes_per_s: float, policy: Policy
) -> SimulatedJobs:
    """Plays all jobs to their end."""
    import numpy as np

    player = _JobSimulator(pool, nodes, file_system_bytes_per_s, policy, len(jobs))
    player.simulate_jobs(jobs)
    records = player.records
    return SimulatedJobs(
        submit_s=jobs.submit_s,
        granules=np.array(records.granules),
        **{name: np.array(values) for name, values in records.of_jobs.items()},
        **{name: np.array(values) for name, values in records.moments.items()},
    )
