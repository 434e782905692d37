#!/bin/sh
# Stands in for the programs around a tuned job; its name says for which. What the job does with them goes to
# $FAKE_LAUNCHES, from which fake_series.py computes times and counters.
set -eu
launch() { printf '%s\t%s\t%s\t%s\n' "$RANKS" "$PWD" "${MPICH_MPIIO_HINTS:-}" "$*" >>"$FAKE_LAUNCHES"; }
case "${0##*/}" in
forebay) # everything but the series is the real one's
  if [ "$1" = __series ]; then exec "$FAKE_PYTHON" -m support.fake_series "$@"; fi
  exec "$REAL_FOREBAY" "$@"
  ;;
mpiexec*) # -n RANKS PROGRAM [ARGUMENT]...
  export RANKS="$2"
  shift 2
  exec "$@"
  ;;
app) # [--verify] [--compute SECONDS] [--deaf] [--at DIRECTORY] FILE
  for file; do :; done
  echo data >"$file"
  launch app "$@"
  case " $* " in *" --verify "*) echo '{"verified":true}' ;; esac
  ;;
lfs) # setstripe -c COUNT -S SIZE DIRECTORY...
  echo "$3 $5" >"$FAKE_LAYOUT"
  ;;
forebay-replay) # --print TRACE, or [OPTION]... TRACE
  for trace; do :; done
  if [ "$1" = --print ]; then exec cat "$trace/header"; fi
  if [ -e "$trace/damage" ]; then
    cat "$trace/damage"
    exit 1
  fi
  launch replay "$@"
  ;;
esac
