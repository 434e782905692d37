"""Runs with which nothing is wrong."""

from support.labelled.label import healthy
from support.labelled.patterns import CACHED_S, KIB, MIB, call_s, collective, own_files, rows, segments
from support.labelled.recorder import Run


@healthy()
def checkpoint_of_a_file_per_rank():
    run = Run(64)
    run.compute(20)
    own_files(run, "/lustre/ckpt/rank.{}", "WRITE", 4 * MIB, 2048)
    return run


@healthy()
def large_segments_of_a_shared_file():
    run = Run(64)
    run.compute(10)
    segments(run, run.striped("/lustre/out/shared.bin", 16), "WRITE", 8 * MIB, 512, module="MPI-IO")
    return run


@healthy()
def collective_writes_through_one_aggregator_for_each_stripe():
    run = Run(128)
    run.compute(15)
    path = run.striped("/lustre/out/field.nc", 16)
    collective(run, path, "WRITE", 512 * KIB, 200, aggregators=16, system=MIB, exchange_s=0.004)
    return run


@healthy()
def computation_with_awful_but_little_io():
    run = Run(16)
    run.compute(900)
    rows(run, "/lustre/out/trace.bin", "WRITE", 40, 4000, module="MPI-IO")
    return run


@healthy()
def index_of_a_few_bytes_for_each_large_block():
    run = Run(32)
    run.compute(10)
    path = run.striped("/lustre/out/data.h5", 8)
    segments(run, path, "WRITE", 4 * MIB, 1024, module="MPI-IO")
    for rank in range(32):
        run.call(rank, path, "WRITE", 272, CACHED_S, kind="INDEP", count=1024)
        run.move(rank, path, "WRITE", 272, CACHED_S, offset=rank * 272, count=1024)
    return run


@healthy()
def input_read_once_by_each_rank():
    run = Run(32)
    own_files(run, "/lustre/in/part.{}", "READ", 2 * MIB, 3000)
    run.compute(20)
    return run


@healthy()
def one_sync_of_each_rank_when_the_checkpoint_is_whole():
    run = Run(256)
    run.compute(10)
    path = run.striped("/lustre/ckpt/all.bin", 32)
    segments(run, path, "WRITE", 16 * MIB, 64)
    for rank in range(256):
        run.sync(rank, path, 1.5)
    return run


@healthy()
def namelist_read_by_one_rank():
    run = Run(64)
    run.open(0, "/home/ada/namelist", 0.01, "STDIO")
    run.move(0, "/home/ada/namelist", "READ", 64, CACHED_S, count=120, module="STDIO")
    run.meet()
    run.compute(30)
    own_files(run, "/lustre/out/h.{}", "WRITE", 8 * MIB, 700)
    return run


@healthy()
def log_of_text_next_to_a_large_dump():
    run = Run(16)
    run.open(0, "/lustre/out/log.txt", 0.001, "STDIO")
    run.move(0, "/lustre/out/log.txt", "WRITE", 80, CACHED_S, count=5000, module="STDIO")
    run.compute(12)
    own_files(run, "/lustre/out/dump.{}", "WRITE", 4 * MIB, 1500)
    return run


@healthy()
def stream_read_once_by_one_process():
    run = Run(1, program="/usr/bin/analyse")
    run.open(0, "/gpfs/data/run.dat")
    run.move(0, "/gpfs/data/run.dat", "READ", MIB, call_s(MIB), count=20_000)
    run.compute(20)
    return run


@healthy(held_out=True)
def ranks_with_more_work_take_longer():
    run = Run(32)
    for rank in range(32):
        own_files(run, "/lustre/out/amr.{}", "WRITE", 4 * MIB, 400 * (1 + rank % 4), ranks=[rank])
    run.meet()
    run.compute(10)
    return run


@healthy(held_out=True)
def collective_reads_of_a_large_field():
    run = Run(96)
    path = run.striped("/lustre/in/era5.nc", 12, 4 * MIB)
    collective(run, path, "READ", 3 * MIB, 100, aggregators=12, system=4 * MIB, exchange_s=0.01)
    run.compute(8)
    return run


@healthy(held_out=True)
def few_files_appended_by_opening_again():
    run = Run(8)
    run.compute(5)
    for rank in range(8):
        path = f"/gpfs/out/history.{rank}"
        for step in range(60):
            run.open(rank, path, 0.001)
            run.move(rank, path, "WRITE", 64 * MIB, call_s(64 * MIB), offset=0)
    return run


@healthy(held_out=True)
def file_read_from_the_cache_that_was_just_written():
    run = Run(24)
    run.compute(30)
    for rank in range(24):
        path = f"/lustre/tmp/spill.{rank}"
        own_files(run, "/lustre/tmp/spill.{}", "WRITE", 16 * MIB, 300, ranks=[rank])
        run.move(rank, path, "READ", 16 * MIB, call_s(16 * MIB, rate=4e9), count=300)
    return run


@healthy(held_out=True)
def one_file_of_each_node_in_large_calls():
    run = Run(64)
    run.compute(6)
    own_files(run, "/lustre/out/node.{}", "WRITE", 32 * MIB, 400, ranks=range(0, 64, 8))
    run.meet()
    return run


@healthy(held_out=True)
def shared_file_written_in_blocks_of_two_stripes():
    run = Run(48)
    run.compute(4)
    segments(run, run.striped("/lustre/out/vpic.bin", 24, 2 * MIB), "WRITE", 4 * MIB, 900, seconds=0.02)
    return run


@healthy(held_out=True)
def little_io_of_many_files():
    run = Run(8)
    run.compute(600)
    for rank in range(8):
        for number in range(200):
            path = f"/gpfs/out/{rank}/{number}"
            run.open(rank, path, 0.002)
            run.move(rank, path, "WRITE", 20 * KIB, 0.0002)
    return run


@healthy(held_out=True)
def collective_writes_with_few_tiny_ones():
    run = Run(64)
    run.compute(12)
    path = run.striped("/lustre/out/plt0010.h5", 8)
    collective(run, path, "WRITE", 2 * MIB, 150, aggregators=8, system=MIB, exchange_s=0.01)
    for rank in range(64):
        run.call(rank, path, "WRITE", 96, 0.0004, count=30)
    return run


@healthy(held_out=True)
def large_writes_that_are_not_aligned():
    run = Run(32)
    run.compute(10)
    path = run.striped("/lustre/out/big.bin", 16)
    segments(run, path, "WRITE", 16_000_000, 300, module="MPI-IO")
    return run
