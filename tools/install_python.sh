#!/bin/bash
# Prints the Python that `make install` builds on: one that every user of the machine can run. The first python3 in PATH
# may belong to root alone, as one of pyenv's below /root does.
# Usage: tools/install_python.sh
set -euo pipefail

# As an ordinary user, where root installs for all; as this user otherwise.
as_other=()
if [ "$(id -u)" -eq 0 ]; then
    # setpriv itself still has root's capabilities when it starts a program; the shell has none.
    # shellcheck disable=SC2016
    as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups /bin/sh -c 'exec "$0" "$@"')
fi
own=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null || true)
for python in "$own" /usr/local/bin/python3 /usr/bin/python3 /usr/bin/python3.1[1-9]; do
    if [ -n "$python" ] &&
        (cd / && "${as_other[@]}" "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))') 2>/dev/null; then
        echo "$python"
        exit 0
    fi
done
echo "error: no Python of version 3.11 or newer, with venv, that all users can run" >&2
echo "hint: as root: apt-get install python3 python3-venv" >&2
exit 1
