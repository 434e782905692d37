#!/bin/bash
# What counting takes of the run time of BTIO "simple", many small writes, on a file in memory.
# Usage: mpi/bench/btio_simple.sh BUILD [ROUNDS [RANKS [SWEEPS]]]: in each round the program runs without the
# library, with it and counting, and without it again. The two without tell what a difference is worth.
set -euo pipefail
build=$(realpath "$1")
rounds=${2:-15} ranks=${3:-4} sweeps=${4:-5}
scratch=$(mktemp -d "${SCRATCH:-/dev/shm}/forebay-cost-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
library=$build/lib/forebay/openmpi/libforebay_mpi.so
mkdir "$scratch/record"
printf 'w\n0\n20\n64 64 64\n%s\n' "$scratch" >"$scratch/deck"

run() {
    local way=$1
    shift
    mpiexec.openmpi -n "$ranks" env "$@" "$build/kernels/btio" --variant simple --sweeps "$sweeps" "$scratch/deck" |
        sed -E 's/.*"calls":([0-9]+).*"total_s":([0-9.]+),"io_s":([0-9.]+).*/\1 \2 \3/' >>"$scratch/$way"
}

for ((round = 0; round < rounds; round++)); do
    run without NOTHING=
    run counting LD_PRELOAD="$library" FOREBAY_PROFILE="$scratch/record"
    run again NOTHING=
done
# Medians, and those of the ratios within a round, which other work on the machine disturbs least.
python3 - "$scratch" <<'PY'
import pathlib, statistics, sys

scratch = pathlib.Path(sys.argv[1])
times = {way: [line.split() for line in (scratch / way).read_text().splitlines()] for way in ("without", "counting", "again")}
calls = times["without"][0][0]
for column, name in ((1, "run"), (2, "I/O")):
    seconds = {way: [float(line[column]) for line in lines] for way, lines in times.items()}
    for way, values in seconds.items():
        ratios = [value / base for value, base in zip(values, seconds["without"])]
        quarters = statistics.quantiles(ratios, n=4)
        print(
            f"{name}, {calls} writes, {way}: median {statistics.median(values):.4f} s, of the ratios "
            f"{statistics.median(ratios) - 1:+.1%} ({quarters[0] - 1:+.1%} to {quarters[2] - 1:+.1%}); "
            f"least {min(values):.4f} s, {min(values) / min(seconds['without']) - 1:+.1%}"
        )
PY
