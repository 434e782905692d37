#!/bin/bash
#SBATCH -N 1
#SBATCH -t 1
#BB create_persistent name=george_test capacity=600G access=striped type=scratch
exit 0
