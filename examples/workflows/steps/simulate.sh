#!/bin/bash
# One member of an ensemble: forebay run simulate.sh -- SIMULATE.py MEMBER, in a directory of the member's own.
#DW jobdw type=scratch access_mode=striped capacity=64MiB
#DW stage_in  type=directory source=%d/checkpoint destination=$DW_JOB_STRIPED/checkpoint
#DW stage_out type=directory source=$DW_JOB_STRIPED/checkpoint destination=%d/checkpoint
#DW stage_out type=directory source=$DW_JOB_STRIPED/result destination=%d/result

# Forebay stages out this directory even if the time limit ends the job.
mkdir "$DW_JOB_STRIPED/result"
exec python3 "$1" "$2" "$DW_JOB_STRIPED"
