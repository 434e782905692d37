#!/bin/bash
#BSUB -P projid
#BSUB -J nas_btio
#BSUB -o nas_btio.o%J
#BSUB -W 10
#BSUB -nnodes 1
#BSUB -alloc_flags "smt4 maximizegpfs"
module load spectrum-mpi
export ROMIO_HINTS=$PWD/romio_hints
jsrun -n 1 -a 4 -c 4 -r 1 ./btio inputbt.data
