#!/bin/bash
# Slurm's controller and four nodes. The first process of its own namespaces (cluster.py starts it): when it
# ends, every process, mount and network interface made here is gone with it.
# Usage: cluster.sh TOP BUILD
set -euo pipefail
top=$1 build=$2
hostname ctl
# shellcheck source=tests/support/bridge.sh
. "$top/bridge.sh"
make_bridge 10.77.0.100/24
mount --bind "$top/etc-hosts" /etc/hosts # every host resolves the names of all
[ ! -e "$top/etc-group" ] || mount --bind "$top/etc-group" /etc/group
# Every user may mount FUSE, as systems allow it that are set up for it.
mknod -m 666 "$top/fuse" c 10 229
mount --bind "$top/fuse" /dev/fuse
mountpoint -q /sys/fs/fuse/connections || mount -t fusectl none /sys/fs/fuse/connections

setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --key-file="$top/munge/key" \
    --socket="$top/munge/socket" --pid-file="$top/munge/pid" --seed-file="$top/munge/seed" \
    --log-file="$top/munge/log" &
while [ ! -S "$top/munge/socket" ]; do sleep 0.01; done
controller=(setpriv --reuid=slurm --regid=slurm --clear-groups slurmctld -D -f "$SLURM_CONF")
if [ -e "$top/site.toml" ]; then # with burst buffers
    export FOREBAY_SITE=$top/site.toml
    controller=("$top/restart.sh" "$top" controller "${controller[@]}")
fi
"${controller[@]}" &

node() { # node NUMBER: in its own network; becomes a host with its own name, processes, /tmp, NVMe and memory
    exec nsenter --net="/run/netns/n$1" unshare --mount --uts --pid --fork --kill-child --mount-proc \
        "$top/node.sh" "n$1" "$top" "$build"
}
for number in 1 2 3 4; do
    plug_in "$number" "10.77.0.$number/24"
    node "$number" &
done
while wait -n || [ $? != 127 ]; do :; done # until nothing runs any more; bash reaps orphans, too
