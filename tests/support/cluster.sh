#!/bin/bash
# Slurm's controller and four nodes. The first process of its own namespaces (cluster.py starts it): when it
# ends, every process, mount and network interface made here is gone with it.
# Usage: cluster.sh TOP BUILD
set -euo pipefail
top=$1 build=$2
hostname ctl
mount -t tmpfs none /run # named network namespaces and Slurm's own files are nobody else's
mkdir -p /run/netns
ip link set lo up
ip link add bridge type bridge
ip address add 10.77.0.100/24 dev bridge
ip link set bridge up

setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --key-file="$top/munge/key" \
    --socket="$top/munge/socket" --pid-file="$top/munge/pid" --seed-file="$top/munge/seed" \
    --log-file="$top/munge/log" &
while [ ! -S "$top/munge/socket" ]; do sleep 0.01; done
setpriv --reuid=slurm --regid=slurm --clear-groups slurmctld -D -f "$SLURM_CONF" &

node() { # node NUMBER: in its own network; becomes a host with its own name, processes, /tmp, NVMe and memory
    exec nsenter --net="/run/netns/n$1" unshare --mount --uts --pid --fork --kill-child --mount-proc \
        "$top/node.sh" "n$1" "$top" "$build"
}
for number in 1 2 3 4; do
    ip netns add "n$number"
    ip link add "port$number" type veth peer name eth0 netns "n$number"
    ip link set "port$number" master bridge up
    ip -n "n$number" address add "10.77.0.$number/24" dev eth0
    ip -n "n$number" link set eth0 up
    ip -n "n$number" link set lo up
    node "$number" &
done
while :; do wait -n || true; done # also for what becomes an orphan here
