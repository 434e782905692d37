#!/bin/sh
# The simulation in the burst buffer; each step is plotted there as soon as it is closed, and each picture
# staged out as soon as it is drawn. The steps themselves stay where they are, and go with the job.
cd "$(dirname "$0")" || exit
PYTHON=${PYTHON:-python3}
export PYTHON
# shellcheck disable=SC2016 # it is the job's shell that sees these variables
exec "${FOREBAY:-forebay}" run \
  --on-close 'step-*.nc="$PYTHON" plot.py {} "$DW_JOB_STRIPED/pictures/$(basename {} .nc).png"' \
  --drain 'pictures/*.png' "$@" insitu.sh
