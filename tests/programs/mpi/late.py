"""MPI-IO from Python, whose MPI is loaded long after the program has begun: late.py PATH."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
for block in range(4):
    file.Write_at((block * world.size + world.rank) * 1000, b"x" * 1000)
file.Write_at_all((4 * world.size + world.rank) * 1000, b"x" * 1000)
file.Close()
# One write: mpiexec may mix the lines of ranks that are written in pieces.
sys.stdout.write(f"rank {world.rank} ok\n")
