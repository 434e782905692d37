"""Runs that something slows."""

from support.labelled.label import label
from support.labelled.patterns import GIB, KIB, MIB, call_s, collective, own_files, rows, segments, sieved, unjoined
from support.labelled.recorder import Run


@label("collective-buffering-off")
def collective_writes_without_buffering():
    run = Run(64)
    run.compute(30)
    path = run.striped("/lustre/out/btio.full", 8)
    unjoined(run, path, "WRITE", 160 * KIB, 40, piece=1600, piece_s=0.0006)
    return run


@label("collective-buffering-off")
def collective_reads_without_buffering():
    run = Run(16)
    unjoined(run, "/gpfs/in/mesh.nc", "READ", MIB, 20, piece=4 * KIB, piece_s=0.0008)
    run.compute(20)
    return run


@label("data-sieving")
def independent_strided_writes_with_sieving():
    run = Run(32)
    run.compute(10)
    path = run.striped("/lustre/out/strided.bin", 4)
    sieved(run, path, 128 * KIB, 200, ranks=range(32), block=512 * KIB, holes=False, read_s=0.02)
    return run


@label("data-sieving")
def collective_writes_around_holes():
    run = Run(128)
    run.compute(20)
    path = run.striped("/lustre/out/h0.nc", 16)
    sieved(
        run,
        path,
        150 * KIB,
        100,
        ranks=range(0, 128, 8),
        block=MIB,
        holes=True,
        read_s=0.03,
        exchange_s=0.02,
        kind="COLL",
    )
    return run


@label("few-aggregators")
def one_aggregator_for_many_ranks():
    run = Run(64)
    run.compute(5)
    collective(run, "/gpfs/out/wrfout.nc", "WRITE", 256 * KIB, 100, aggregators=1, system=16 * MIB, exchange_s=0.02)
    return run


@label("small-collective")
def collective_reads_of_a_few_bytes():
    run = Run(64)
    path = run.striped("/lustre/in/wrfbdy_d01", 8)
    collective(run, path, "READ", 800, 6000, aggregators=8, system=6400, exchange_s=0.003)
    run.compute(30)
    return run


@label("one-stripe")
def large_shared_file_on_one_target():
    run = Run(64)
    run.compute(20)
    path = run.striped("/lustre/out/restart.bin", 1, targets=[5])
    segments(run, path, "WRITE", 4 * MIB, 64, seconds=0.35)
    return run


@label("not-aligned")
def records_across_block_borders():
    run = Run(64)
    run.compute(20)
    path = run.striped("/lustre/out/records.bin", 16)
    rows(run, path, "WRITE", 900_000, 400, module="MPI-IO", seconds=0.08)
    return run


@label("small-independent")
def small_independent_writes_of_all_ranks():
    run = Run(64)
    run.compute(10)
    rows(run, run.striped("/lustre/out/particles.h5", 8), "WRITE", 800, 20_000, module="MPI-IO")
    return run


@label("independent-pieces")
def independent_calls_with_holes():
    run = Run(16)
    run.compute(10)
    rows(run, "/gpfs/out/array.bin", "WRITE", 2 * KIB, 40_000, module="MPI-IO", pieces=4000)
    return run


@label("small-calls")
def fortran_records_one_by_one():
    run = Run(8)
    run.compute(10)
    own_files(run, "/lustre/out/fort.{}", "WRITE", 40, 200_000, seconds=0.0001)
    return run


@label("small-calls")
def pages_read_at_random():
    run = Run(1, program="/usr/bin/blast")
    run.compute(20)
    run.open(0, "/lustre/db/nt.idx")
    run.back(0, "/lustre/db/nt.idx", "READ", 4 * KIB, 0.0012, 60_000, 90 * GIB)
    return run


@label("read-again")
def epochs_over_one_file():
    run = Run(1, program="/usr/bin/python3", arguments="train.py")
    path = "/lustre/data/train.rec"
    for _ in range(5):
        run.open(0, path)
        run.move(0, path, "READ", 4 * MIB, call_s(4 * MIB), count=4000)
        run.compute(15)
    return run


@label("many-syncs")
def sync_after_each_record():
    run = Run(4)
    run.compute(10)
    for rank in range(4):
        path = f"/lustre/out/journal.{rank}"
        own_files(run, "/lustre/out/journal.{}", "WRITE", 64 * KIB, 4000, seconds=0.0001, ranks=[rank])
        run.sync(rank, path, 0.008, 4000)
    return run


@label("metadata-heavy")
def files_opened_in_each_step():
    run = Run(64)
    run.compute(60)
    for rank in range(64):
        run.open(rank, f"/lustre/out/probe.{rank}", 0.03, times=1500)
        run.move(rank, f"/lustre/out/probe.{rank}", "WRITE", 20 * KIB, 0.0004, count=1500)
    return run


@label("stat-storm")
def attributes_asked_by_all_ranks():
    run = Run(32)
    run.compute(40)
    for rank in range(32):
        for number in range(4):
            run.stat(rank, f"/lustre/flags/{rank}.{number}", 0.004, times=1200)
    own_files(run, "/lustre/out/o.{}", "WRITE", 4 * MIB, 300)
    return run


@label("stat-storm")
def attributes_asked_by_one_rank_for_all():
    run = Run(256)
    own_files(run, "/lustre/out/part.{}", "WRITE", 8 * MIB, 20)
    run.meet()
    for number in range(256):
        run.stat(0, f"/lustre/out/part.{number}", 0.012)
    run.meet()
    run.compute(10)
    return run


@label("blocked-open")
def pipe_without_a_writer():
    run = Run(1, program="/usr/bin/coupler")
    run.open(0, "/home/ada/run/pipe", 240.0)
    run.move(0, "/home/ada/run/pipe", "READ", 4 * KIB, 0.001, count=100)
    run.compute(200)
    return run


@label("many-small-files", also=["metadata-heavy"])
def thousands_of_small_files():
    run = Run(8)
    run.compute(20)
    for rank in range(8):
        for number in range(600):
            path = f"/lustre/out/{rank}/frame.{number}"
            run.open(rank, path, 0.02)
            run.move(rank, path, "WRITE", 10 * KIB, 0.001)
    return run


@label("import-storm")
def python_modules_read_by_all_ranks():
    run = Run(128, program="/usr/bin/python3", arguments="solve.py")
    for number in range(250):
        path = f"/home/ada/env/lib/python3.11/site-packages/mod{number}.so"
        for rank in range(128):
            run.open(rank, path, 0.04)
            run.move(rank, path, "READ", 64 * KIB, 0.01, count=2)
    run.compute(60)
    return run


@label("opened-by-all")
def input_opened_by_all_ranks():
    run = Run(512)
    for rank in range(512):
        run.open(rank, "/home/ada/input.toml", 4.0 + rank / 512)
        run.move(rank, "/home/ada/input.toml", "READ", 512, 0.001, count=8)
    run.compute(20)
    return run


@label("one-rank")
def all_output_through_rank_zero():
    run = Run(64)
    run.compute(10)
    own_files(run, "/lustre/out/result.bin", "WRITE", 8 * MIB, 2500, ranks=[0])
    run.meet()
    return run


@label("slow-target")
def one_storage_target_is_slow():
    run = Run(96)
    for rank in range(96):
        path = run.striped(f"/lustre/out/ior.{rank}", 1, targets=[rank % 12])
        own_files(
            run, "/lustre/out/ior.{}", "WRITE", 4 * MIB, 64, seconds=0.6 if rank % 12 == 7 else 0.04, ranks=[rank]
        )
        assert path in run.layouts
    run.meet()
    run.compute(5)
    return run


@label("straggler")
def one_node_is_slow():
    run = Run(64)
    for rank in range(64):
        own_files(run, "/gpfs/out/rank.{}", "WRITE", 4 * MIB, 500, seconds=0.15 if rank == 41 else 0.02, ranks=[rank])
    run.meet()
    run.compute(20)
    return run


@label("single-rank-mpiio")
def header_written_value_by_value_through_mpi_io():
    run = Run(16)
    run.compute(10)
    path = "/gpfs/out/header.bin"
    run.open(0, path, 0.003, "MPI-IO", collective=False)
    run.open(0, path, 0.003)
    run.call(0, path, "WRITE", 8, 0.0007, kind="INDEP", count=30_000, clock=False)
    run.move(0, path, "WRITE", 8, 0.00065, count=30_000)
    run.meet()
    return run


@label("collective-overhead")
def contiguous_collective_writes_through_few_ranks():
    run = Run(64)
    run.compute(5)
    path = run.striped("/lustre/out/ior.coll", 8)
    collective(run, path, "WRITE", 16 * MIB, 10, aggregators=8, system=4 * MIB, exchange_s=3.0, view=False)
    return run


@label("many-syncs", "small-calls")
def small_records_with_a_sync_each():
    run = Run(2)
    run.compute(10)
    for rank in range(2):
        own_files(run, "/lustre/out/wal.{}", "WRITE", 200, 6000, seconds=0.0008, ranks=[rank])
        run.sync(rank, f"/lustre/out/wal.{rank}", 0.004, 6000)
    return run


@label("sieved-reads")
def columns_read_through_whole_regions():
    run = Run(16)
    path = "/gpfs/in/table.bin"
    for rank in range(16):
        run.open(rank, path, 0.003, "MPI-IO")
        run.open(rank, path, 0.003)
        run.call(rank, path, "READ", 400 * KIB, 0.021, kind="INDEP", count=300, view=True, clock=False)
        run.move(rank, path, "READ", 4 * MIB, 0.02, offset=rank * 1200 * MIB, count=300)
    run.compute(10)
    return run


@label("small-calls")
def one_small_file_of_records_for_each_step():
    run = Run(1, program="/usr/bin/post")
    for step in range(250):
        path = f"/lustre/out/series_{step:04}.dat"
        run.open(0, path, 0.001)
        run.move(0, path, "WRITE", 80, 0.0001, count=2500)
        run.compute(0.1)
    return run


@label("import-storm")
def shared_libraries_from_home():
    run = Run(1024, program="/home/ada/bin/fem")
    for number in range(40):
        for rank in range(1024):
            run.open(rank, f"/home/ada/lib/libfem{number}.so.2", 0.2)
            run.move(rank, f"/home/ada/lib/libfem{number}.so.2", "READ", 200 * KIB, 0.05)
    run.compute(50)
    return run
