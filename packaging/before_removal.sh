#!/bin/sh
# Before the removal of the deb (`remove`) or rpm (0), not before an upgrade: the daemon ends with its program.
# What systemctl cannot do prevents no removal.
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
    systemctl disable --now forebay-noded.service || :
fi
