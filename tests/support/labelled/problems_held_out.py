"""Runs that something slows, kept aside: never used to choose a rule or a threshold."""

from support.labelled.label import label
from support.labelled.patterns import GIB, KIB, MIB, collective, own_files, rows, segments, sieved, unjoined
from support.labelled.recorder import Run


@label("collective-buffering-off")
def large_collective_writes_in_rows():
    run = Run(256)
    run.compute(25)
    path = run.striped("/lustre/out/s3d.field", 32)
    unjoined(run, path, "WRITE", 4 * MIB, 3, piece=8 * KIB, piece_s=0.0015)
    return run


@label("data-sieving", also=["small-independent"])
def sieving_in_a_file_that_is_read_back():
    run = Run(16)
    path = "/gpfs/out/mixed.bin"
    sieved(run, path, 64 * KIB, 300, ranks=range(16), block=512 * KIB, holes=False, read_s=0.015)
    for rank in range(16):
        run.call(rank, path, "READ", 4 * MIB, 0.01, kind="INDEP", count=100, clock=False)
        run.move(rank, path, "READ", 4 * MIB, 0.0098, offset=rank * 400 * MIB, count=100)
    run.compute(10)
    return run


@label("small-independent")
def random_independent_reads_of_a_mesh():
    run = Run(32)
    path = run.striped("/lustre/in/mesh.bin", 4)
    for rank in range(32):
        run.open(rank, path, 0.003)
        run.open(rank, path, 0.003, "MPI-IO")
        run.call(rank, path, "READ", 24 * KIB, 0.0031, kind="INDEP", count=8000, clock=False)
        run.back(rank, path, "READ", 24 * KIB, 0.003, 8000, 200 * GIB)
    run.compute(30)
    return run


@label("small-calls")
def shared_text_of_short_lines():
    run = Run(16)
    run.compute(15)
    rows(run, "/lustre/out/events.csv", "WRITE", 90, 12_000, seconds=0.0015)
    return run


@label("read-again")
def whole_input_read_by_every_rank():
    run = Run(128)
    path = run.striped("/lustre/in/tables.bin", 8)
    for rank in range(128):
        run.open(rank, path)
        run.move(rank, path, "READ", 4 * MIB, 0.03, count=500)
    run.compute(40)
    return run


@label("many-syncs")
def shared_log_synced_by_all_ranks():
    run = Run(32)
    run.compute(20)
    path = "/gpfs/out/shared.log"
    segments(run, path, "WRITE", 16 * KIB, 400, seconds=0.0002)
    for rank in range(32):
        run.sync(rank, path, 0.02, 400)
    return run


@label("metadata-heavy", also=["one-rank"])
def one_rank_that_opens_all_restart_files():
    run = Run(128)
    for number in range(900):
        run.open(0, f"/lustre/restart/tile.{number}", 0.03)
        run.move(0, f"/lustre/restart/tile.{number}", "READ", 40 * KIB, 0.001, count=40)
    run.meet()
    run.compute(90)
    return run


@label("stat-storm")
def polling_for_a_flag_file():
    run = Run(4, program="/usr/bin/python3", arguments="wait.py")
    for rank in range(4):
        run.stat(rank, "/home/ada/flags/ready", 0.003, times=9000)
    own_files(run, "/lustre/out/q.{}", "WRITE", MIB, 400)
    run.compute(60)
    return run


@label("slow-target")
def two_storage_targets_are_slow_for_reads():
    run = Run(160)
    for rank in range(160):
        run.striped(f"/lustre/in/p.{rank}", 2, targets=[rank % 20, (rank + 10) % 20])
        own_files(run, "/lustre/in/p.{}", "READ", 4 * MIB, 100, seconds=0.3 if rank % 10 == 3 else 0.02, ranks=[rank])
    run.compute(20)
    return run


@label("straggler")
def one_rank_is_slow_in_a_shared_file():
    run = Run(64)
    path = run.striped("/lustre/out/state.bin", 16)
    run.compute(15)
    for rank in range(64):
        run.open(rank, path, 0.003)
        each_s = 0.2 if rank == 12 else 0.02
        run.move(rank, path, "WRITE", 8 * MIB, each_s, offset=rank * 100 * 8 * MIB, count=100)
    return run


@label("one-rank", also=["small-calls"])
def gathered_output_in_records():
    run = Run(32)
    run.compute(12)
    own_files(run, "/gpfs/out/gathered.dat", "WRITE", 8 * KIB, 40_000, seconds=0.0007, ranks=[3])
    run.meet()
    return run


@label("one-stripe")
def collective_writes_to_one_target():
    run = Run(496)
    run.compute(60)
    path = run.striped("/lustre/out/flash.h5", 1, targets=[2])
    collective(run, path, "WRITE", 2 * MIB, 20, aggregators=1, system=MIB, exchange_s=0.2, latency_s=0.008)
    return run


@label("many-small-files", also=["metadata-heavy"])
def small_files_read_by_a_training_job():
    run = Run(4, program="/usr/bin/python3", arguments="train.py")
    for rank in range(4):
        for number in range(2500):
            path = f"/lustre/images/{rank}/{number}.jpg"
            run.open(rank, path, 0.004)
            run.move(rank, path, "READ", 110 * KIB, 0.006)
    run.compute(30)
    return run


@label("few-aggregators")
def one_aggregator_on_nfs():
    run = Run(24)
    run.compute(8)
    collective(run, "/home/ada/out/cube.nc", "WRITE", MIB, 60, aggregators=1, system=4 * MIB, exchange_s=0.05)
    return run


@label("single-rank-mpiio")
def tiny_reads_of_one_rank_through_mpi_io():
    run = Run(64)
    path = "/lustre/in/index.bin"
    run.open(9, path, 0.003, "MPI-IO", collective=False)
    run.open(9, path, 0.003)
    run.call(9, path, "READ", 64, 0.0009, kind="INDEP", count=12_000, clock=False)
    run.move(9, path, "READ", 64, 0.00085, count=12_000)
    run.meet()
    run.compute(25)
    return run


@label("blocked-open")
def mount_that_hung():
    run = Run(8)
    own_files(run, "/gpfs/in/a.{}", "READ", MIB, 20)
    run.open(5, "/archive/in/old.dat", 420.0)
    run.move(5, "/archive/in/old.dat", "READ", MIB, 0.01, count=50)
    run.meet()
    run.compute(100)
    return run


@label("collective-overhead")
def contiguous_collective_reads_through_few_ranks():
    run = Run(128)
    path = run.striped("/lustre/in/ior.coll", 4, 4 * MIB)
    collective(run, path, "READ", 8 * MIB, 25, aggregators=4, system=4 * MIB, exchange_s=4.0, view=False)
    run.compute(10)
    return run


@label("not-aligned")
def blocks_of_odd_sizes_in_a_shared_file():
    run = Run(128)
    run.compute(15)
    rows(run, run.striped("/lustre/out/wave.bin", 8), "WRITE", 300_000, 200, seconds=0.09)
    return run


@label("opened-by-all")
def tables_opened_by_all_ranks():
    run = Run(1024)
    for number in range(3):
        for rank in range(1024):
            run.open(rank, f"/home/ada/tables/{number}.dat", 1.5)
            run.move(rank, f"/home/ada/tables/{number}.dat", "READ", 64 * KIB, 0.004, count=4)
    run.compute(40)
    return run


@label("many-syncs", "metadata-heavy")
def two_programs_worth_of_trouble():
    run = Run(8)
    run.compute(10)
    for rank in range(8):
        run.open(rank, f"/lustre/out/state.{rank}", 0.01, times=2000)
        run.move(rank, f"/lustre/out/state.{rank}", "WRITE", 256 * KIB, 0.0002, count=2000)
        run.sync(rank, f"/lustre/out/state.{rank}", 0.006, 2000)
    return run
