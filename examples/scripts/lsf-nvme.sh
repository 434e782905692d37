#!/bin/bash
#BSUB -P projid
#BSUB -J nas_btio
#BSUB -W 10
#BSUB -alloc_flags "nvme"
#BSUB -nnodes 1
jsrun -n 1 cp btio inputbt.data /mnt/bb/$USER/
cd /mnt/bb/$USER
jsrun -n 1 -a 4 -c 4 -r 1 /mnt/bb/$USER/btio inputbt.data
jsrun -n 1 cp btio.full.out /gpfs/alpine/scratch/$USER/
