#!/bin/bash
#SBATCH -N 1 -n 4
#SBATCH -t 00:10:00
cp btio inputbt.data $DW_JOB_STRIPED
cd $DW_JOB_STRIPED
srun -n 4 ./btio inputbt.data
ls -l btio.full.out
