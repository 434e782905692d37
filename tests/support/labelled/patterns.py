"""How programs and MPI libraries do I/O, as calls of a `Run`. Times are those of a plain cost model."""

LATENCY_S = 0.0006  # of a system call on a parallel file system that is not in the page cache
CACHED_S = 0.000004
RATE = 600e6  # bytes per second of one rank or aggregator
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def call_s(size, latency_s=LATENCY_S, rate=RATE):
    return latency_s + size / rate


def own_files(run, pattern, way, size, count, *, seconds=None, ranks=None, open_s=0.002):
    """A file for each rank, in one go."""
    for rank in range(run.ranks) if ranks is None else ranks:
        path = pattern.format(rank)
        run.open(rank, path, open_s)
        run.move(rank, path, way, size, call_s(size) if seconds is None else seconds, count=count)


def segments(run, path, way, size, count, *, module="POSIX", seconds=None, open_s=0.004, start=0):
    """A shared file in which each rank has a segment of its own; by MPI-IO, independent calls."""
    each_s = call_s(size) if seconds is None else seconds
    for rank in range(run.ranks):
        run.open(rank, path, open_s)
        offset = start + rank * size * count
        if module == "MPI-IO":
            run.open(rank, path, open_s, "MPI-IO")
            run.call(rank, path, way, size, each_s * 1.02, kind="INDEP", count=count, clock=False)
        run.move(rank, path, way, size, each_s, offset=offset, count=count)


def rows(run, path, way, size, count, *, seconds=None, module="POSIX", pieces=1):
    """A shared file in which the ranks' pieces alternate; each MPI-IO call has `pieces` of them."""
    each_s = call_s(size) if seconds is None else seconds
    for rank in range(run.ranks):
        run.open(rank, path, 0.004)
        if module == "MPI-IO":
            run.open(rank, path, 0.004, "MPI-IO")
            run.call(
                rank,
                path,
                way,
                size * pieces,
                each_s * pieces * 1.02,
                kind="INDEP",
                count=count // pieces,
                view=pieces > 1,
                clock=False,
            )
        run.move(rank, path, way, size, each_s, offset=rank * size, count=count, step=size * run.ranks)


def collective(run, path, way, size, calls, *, aggregators, system, exchange_s, view=True, latency_s=LATENCY_S):
    """Two-phase I/O: the aggregators move all data in system calls of `system` bytes, and all ranks wait."""
    each = max(1, size * run.ranks // (aggregators * system))
    moving_s = each * call_s(system, latency_s)
    for rank in range(run.ranks):
        run.open(rank, path, 0.004, "MPI-IO")
    for number in range(aggregators):
        rank = number * (run.ranks // aggregators)
        run.open(rank, path, 0.003)
        begin_s = run.clock[rank]
        run.move(
            rank,
            path,
            way,
            system,
            call_s(system, latency_s),
            offset=number * system,
            count=each * calls,
            step=system * aggregators,
        )
        run.clock[rank] = begin_s
    for rank in range(run.ranks):
        run.call(rank, path, way, size, moving_s + exchange_s, count=calls, view=view)
    run.meet()


def sieved(run, path, size, calls, *, ranks, block, holes, read_s, exchange_s=0.0, kind="INDEP"):
    """Read-modify-write: for each write of a `block` one read, of data or of `holes`, by the given ranks."""
    write_s = call_s(block)
    moved = size * run.ranks if kind == "COLL" else size
    each = max(1, moved * 4 // (block * (len(ranks) if kind == "COLL" else 1)))
    for rank in range(run.ranks):
        run.open(rank, path, 0.004, "MPI-IO")
    for rank in ranks:
        run.open(rank, path, 0.003)
        begin_s, count = run.clock[rank], each * calls
        run.move(rank, path, "READ", 0 if holes else block, read_s, offset=rank * block, count=count, step=block * 64)
        run.move(rank, path, "WRITE", block, write_s, offset=rank * block, count=count, step=block * 64)
        run.of("POSIX", path, rank).counters["RW_SWITCHES"] = 2 * count - 1
        run.clock[rank] = begin_s
    for rank in range(run.ranks):
        spent_s = each * (read_s + write_s) + exchange_s
        run.call(rank, path, "WRITE", size, spent_s, kind=kind, count=calls, view=True)
    run.meet()


def unjoined(run, path, way, size, calls, *, piece, piece_s):
    """Collective calls whose pieces each become a system call of the rank itself."""
    for rank in range(run.ranks):
        run.open(rank, path, 0.004, "MPI-IO")
        run.open(rank, path, 0.003)
        count = size // piece * calls
        begin_s = run.clock[rank]
        run.move(rank, path, way, piece, piece_s, offset=rank * piece, count=count, step=piece * run.ranks)
        run.clock[rank] = begin_s
        run.call(rank, path, way, size, size // piece * piece_s * 1.1, count=calls, view=True)
    run.meet()
