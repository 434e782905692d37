#!/bin/bash
#PBS -q debug
#PBS -l mppwidth=4
#PBS -l walltime=00:10:00
#PBS -N btio
#PBS -V
cd $PBS_O_WORKDIR
aprun -n 4 ./btio inputbt.data
