#!/bin/bash
# What a step does after `forebay run --json` failed: stage-out-again.sh STATUS JSON
#
# 123 means that the job succeeded and that some results are still in the burst buffer only. So this repeats
# the stage-out and not the job. The exit code is 0 when all results are at their destinations, else STATUS.
status=$1
[ "$status" -eq 123 ] || exit "$status"
id=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["run_id"])' <"$2") || exit "$status"
for pause_s in ${PAUSES_S:-10 60 300}; do
    sleep "$pause_s"
    forebay clean "$id" && exit 0
done
exit "$status"
