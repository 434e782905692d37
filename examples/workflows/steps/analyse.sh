#!/bin/bash
# The mean heat of each member: forebay run analyse.sh -- ANALYSE.py. inputs.list names the members' results.
#DW jobdw type=scratch access_mode=striped capacity=64MiB
#DW stage_in  type=list source=%d/inputs.list
#DW stage_out type=file source=$DW_JOB_STRIPED/summary.csv destination=%d/summary.csv

exec python3 "$1" "$DW_JOB_STRIPED/members" "$DW_JOB_STRIPED/summary.csv"
