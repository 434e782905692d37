#!/bin/bash
#SBATCH -J btio
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH -t 10
#SBATCH -o btio_out_%j
#DW jobdw type=scratch access_mode=striped capacity=1GiB
#DW stage_in type=file source=%d/inputbt.data destination=$DW_JOB_STRIPED/inputbt.data
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out
set -e

# The results end in ./out, through a burst buffer or straight. On Lustre they are spread over 4
# targets; a file's layout is bound when it is made, so the old results go first.
rm -rf out
mkdir out
if command -v lfs > /dev/null; then lfs setstripe -c 4 out || echo "out is not on Lustre" >&2; fi

# The job works in the burst buffer if it has one, else here. The deck ends with the output directory.
WORK=${DW_JOB_STRIPED:-$PWD/}
mkdir -p "${WORK}out"
{ cat "${WORK}inputbt.data"; echo "${WORK}out"; } > "${WORK}deck.data"

# --verify reads everything back after the timed part: io_s stays the same, but the job takes
# longer. To time whole jobs, leave it out: BTIO_FLAGS= forebay run btio.sh
BTIO_FLAGS=${BTIO_FLAGS-"--verify"}
# shellcheck disable=SC2086 # several flags are several words
srun -n 4 --hint=nomultithread ./btio --sync $BTIO_FLAGS "${WORK}deck.data"
