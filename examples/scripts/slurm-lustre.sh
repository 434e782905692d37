#!/bin/bash
#SBATCH --partition=workq
#SBATCH -t 10
#SBATCH -A project
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=4
#SBATCH --ntasks-per-socket=2
#SBATCH -J btio
#SBATCH -o btio_out_%j
#SBATCH -e btio_err_%j
srun -n 4 --hint=nomultithread ./btio inputbt.data
