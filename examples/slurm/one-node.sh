#!/bin/bash
#SBATCH --nodes=1 --time=10
#DW jobdw type=scratch access_mode=striped capacity=64MiB
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results
# Where the machine gives no burst buffer, Forebay runs this same script with one, and without root. It takes
# the shell's place (exec), so that Slurm's signals reach it, and it has time to stage out.
[ -n "${DW_JOB_STRIPED-}" ] || exec forebay run "$0"

mkdir "${DW_JOB_STRIPED}out"
hostname >"${DW_JOB_STRIPED}out/host"
