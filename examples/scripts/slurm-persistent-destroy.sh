#!/bin/bash
#SBATCH -N 1
#SBATCH -t 1
#BB destroy_persistent name=george_test
exit 0
