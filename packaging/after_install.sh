#!/bin/sh
# After the installation or an upgrade of the deb or rpm: a daemon that runs is replaced. Jobs go on meanwhile.
# systemctl says what it cannot do, such as with a masked unit; the installation is complete all the same.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    systemctl try-restart forebay-noded.service || :
fi
