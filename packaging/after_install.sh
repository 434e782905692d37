#!/bin/sh
# After the installation or an upgrade of the deb or rpm: a daemon that runs is replaced. Jobs go on meanwhile.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart forebay-noded.service
fi
