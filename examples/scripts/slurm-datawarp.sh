#!/bin/bash
#SBATCH --partition=workq
#SBATCH -t 10
#SBATCH --nodes=1
#SBATCH --ntasks=4
#DW jobdw type=scratch access_mode=striped capacity=2TiB
#DW stage_in type=directory source=/scratch/ada/for_bb/ destination=$DW_JOB_STRIPED
#DW stage_out type=directory destination=/scratch/ada/back_up source=$DW_JOB_STRIPED/
cd $DW_JOB_STRIPED
chmod +x btio
srun -n 4 --hint=nomultithread ./btio inputbt.data
