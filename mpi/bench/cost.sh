#!/bin/bash
# What the library adds to one MPI_File_write_at of 8 bytes, on a file in memory, where nothing hides it.
# Usage: mpi/bench/cost.sh BUILD [ROUNDS]: medians over rounds in which the three ways take turns.
set -euo pipefail
build=$(realpath "$1")
rounds=${2:-15}
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d /dev/shm/forebay-cost-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

median() { sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] " (" at[1] "-" at[NR] ")" }'; }

for family in openmpi mpich; do
    library=$build/lib/forebay/$family/libforebay_mpi.so
    [ -e "$library" ] || continue
    "mpicc.$family" -O2 -pthread "$here/../../tests/mpi/programs/observed.c" -o "$scratch/observed"
    run() { "mpiexec.$family" -n 1 env "$@" "$scratch/observed" cost "$scratch/file"; }
    for ((round = 0; round < rounds; round++)); do
        run NOTHING= >>"$scratch/$family.without"
        run LD_PRELOAD="$library" >>"$scratch/$family.asleep"
        run LD_PRELOAD="$library" FOREBAY_MPI_STATS="$scratch/report" >>"$scratch/$family.counting"
    done
    for way in without asleep counting; do
        echo "$family, $way: $(median <"$scratch/$family.$way") ns"
    done
done
