#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --time=10
#DW jobdw type=scratch access_mode=striped capacity=64MiB
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results
# One Forebay on each node, each with a store of its own: for programs that write a file for each process.
[ -n "${DW_JOB_STRIPED-}" ] || exec srun --wait=0 forebay run "$0"

mkdir "${DW_JOB_STRIPED}out"
hostname >"${DW_JOB_STRIPED}out/rank$SLURM_PROCID"
