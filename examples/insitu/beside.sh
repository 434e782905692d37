#!/bin/bash
#SBATCH -J insitu
#SBATCH --ntasks=1
#DW jobdw type=scratch access_mode=striped capacity=256MiB
"${PYTHON:-python3}" beside.py "${STEPS:-8}"
