#!/bin/bash
#SBATCH --ntasks=4
#DW jobdw type=scratch access_mode=striped capacity=1TiB
#DW stage_out type=directory source=$DW_JOB_STRIPED destination=/scratch/ada/back_up
cp tmp_input inputbt.data
echo $DW_JOB_STRIPED >> inputbt.data
srun -n 4 ./btio inputbt.data
