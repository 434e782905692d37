#!/bin/bash
#SBATCH --time=10
#DW jobdw type=scratch access_mode=striped capacity=256MiB
#DW stage_in type=file source=%d/start.txt destination=$DW_JOB_STRIPED/start.txt
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out

cd "$DW_JOB_STRIPED" || exit
mkdir out
python3 "$SLURM_SUBMIT_DIR/simulate.py" start.txt out 100
du -sh out
