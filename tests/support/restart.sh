#!/bin/bash
# As systemd does, starts a daemon again when it ends, unless a test holds that up with the file TOP/hold-NAME.
# Writes the exit code of each end to TOP/log/ends, from which SiteBatch.end takes those that no test caused.
# Usage: restart.sh TOP NAME COMMAND...
set -euo pipefail
top=$1 name=$2
shift 2
while :; do
    if [ ! -e "$top/hold-$name" ]; then
        code=0
        "$@" || code=$?
        echo "$name $code" >>"$top/log/ends"
    fi
    sleep 0.1 || :
done
