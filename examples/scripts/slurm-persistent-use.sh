#!/bin/bash
#SBATCH --ntasks=4
#DW persistentdw name=george_test
#DW stage_in type=directory source=/scratch/ada/for_bb destination=$DW_PERSISTENT_STRIPED_george_test
export MPICH_MPIIO_HINTS="$DW_PERSISTENT_STRIPED_george_test/wrfinput*:cb_nodes=40:striping_unit=131072"
cd $DW_PERSISTENT_STRIPED_george_test
time srun -n 4 --hint=nomultithread ./btio inputbt.data
