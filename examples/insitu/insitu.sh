#!/bin/bash
#SBATCH -J insitu
#SBATCH --ntasks=1
#DW jobdw type=scratch access_mode=striped capacity=256MiB
#DW stage_out type=directory source=$DW_JOB_STRIPED/pictures destination=%d/pictures
set -e
mkdir "$DW_JOB_STRIPED/pictures"
"${PYTHON:-python3}" simulation.py "$DW_JOB_STRIPED" "${STEPS:-8}"
