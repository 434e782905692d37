#!/bin/bash
#SBATCH --nodes=1 --time=10 --requeue --open-mode=append
#DW jobdw type=scratch access_mode=striped capacity=64MiB
#DW stage_out type=directory source=$DW_JOB_STRIPED/checkpoints destination=%d/checkpoints
[ -n "${DW_JOB_STRIPED-}" ] || exec forebay run "$0"

# Files arrive in any order, so a checkpoint says itself what belongs to it. The newest one of which
# everything has arrived is the one to go on from.
newest_complete() {
    local step
    for step in $(cd checkpoints 2>/dev/null && printf '%s\n' step-* | sort -r); do
        if (cd "checkpoints/$step" && sha256sum --check --status MANIFEST) 2>/dev/null; then
            echo "${step#step-}"
            return
        fi
    done
    echo 0
}

step=$((10#$(newest_complete)))
echo "begins behind step $step"
while [ "$step" -lt "${STEPS:-5}" ]; do
    step=$((step + 1))
    directory=$(printf '%scheckpoints/step-%04d' "$DW_JOB_STRIPED" "$step")
    mkdir -p "$directory"
    for rank in 0 1; do
        echo "rank $rank after step $step" >"$directory/rank$rank"
    done
    (cd "$directory" && sha256sum -- rank* >MANIFEST)
    echo "step $step is done"
    sleep 0.5
done
