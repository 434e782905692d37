#!/bin/bash
# Records the first job of the README as docs/pictures/first-job.cast, and draws it as first-job.svg.
# Usage: tools/record_first_job.sh (needs a built tree and python3 -m venv)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/build/recording-venv
[ -x "$tools/bin/termtosvg" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install -q asciinema==2.4.0 termtosvg==1.1.0 setuptools; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root"/examples/first-job/* "$work"
cat > "$work/.typed" <<'TYPED'
type_and_run() {
    printf '\033[36m$\033[0m '
    for ((at = 0; at < ${#1}; at++)); do printf '%s' "${1:at:1}"; sleep 0.04; done
    sleep 0.4; echo
    eval "$1"
    sleep "${2:-1.5}"
}
type_and_run "grep '#DW' job.sh" 3
type_and_run 'forebay run job.sh' 4
type_and_run 'ls out | head -3' 1.5
type_and_run 'forebay why' 6
TYPED
cd "$work"
export PATH=$root/build/bin:$PATH FOREBAY_STORE=memory FOREBAY_STATE=$work/.state
cast=$root/docs/pictures/first-job.cast
"$tools/bin/asciinema" rec --quiet --overwrite --cols 100 --rows 24 --title "A first job" --env TERM \
    --command "bash $work/.typed" "$cast"
"$tools/bin/termtosvg" render "$cast" "$root/docs/pictures/first-job.svg" -D 4000 -m 17 -t window_frame
