#!/bin/bash
# What the library adds to calls on a file in memory, where nothing hides it: one MPI_File_write_at of 8
# bytes, and without MPI-IO a pwrite and a write of 8 bytes, an fwrite of 8 bytes, an fputc.
# Usage: mpi/bench/cost.sh BUILD [ROUNDS]: medians over rounds in which the three ways take turns.
set -euo pipefail
build=$(realpath "$1")
rounds=${2:-15}
programs=$(dirname "$(realpath "$0")")/../../tests/programs/mpi
scratch=$(mktemp -d /dev/shm/forebay-cost-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
calls=(MPI_File_write_at pwrite write fwrite fputc)

median() { sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] " (" at[1] "-" at[NR] ")" }'; }

for family in openmpi mpich; do
    library=$build/lib/forebay/$family/libforebay_mpi.so
    [ -e "$library" ] || continue
    "mpicc.$family" -O2 -pthread "$programs/observed.c" -o "$scratch/observed"
    "mpicc.$family" -O2 -pthread -DWITH_MPI "$programs/direct.c" -o "$scratch/direct"
    # WAY VARIABLE=VALUE...: one line of figures, in the order of calls
    run() {
        { "mpiexec.$family" -n 1 env "${@:2}" "$scratch/observed" cost "$scratch/file"
          "mpiexec.$family" -n 1 env "${@:2}" "$scratch/direct" cost "$scratch/file"; } |
            paste -sd' ' >>"$scratch/$family.$1"
    }
    for ((round = 0; round < rounds; round++)); do
        run without NOTHING=
        run asleep LD_PRELOAD="$library"
        run counting LD_PRELOAD="$library" FOREBAY_MPI_STATS="$scratch/report"
    done
    for index in "${!calls[@]}"; do
        for way in without asleep counting; do
            echo "$family, ${calls[index]}, $way: $(cut -d' ' -f$((index + 1)) "$scratch/$family.$way" | median) ns"
        done
    done
done
