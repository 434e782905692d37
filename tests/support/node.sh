#!/bin/bash
# One host of the cluster: the first process of its own process, mount and name namespaces.
# Usage: node.sh NAME TOP BUILD
set -euo pipefail
name=$1 top=$2 build=$3
hostname "$name"
mount -t tmpfs none /mnt
mount -t tmpfs none /dev/shm
if [ -e "$top/cgroup-$name" ]; then # the group of version 2 of its daemon
    group=$(<"$top/cgroup-$name")
    mkdir /mnt/cgroup
    mount --bind "${group%/*}" /mnt/cgroup
fi
mount -t tmpfs none /sys/fs/cgroup # what cgroups this machine has is not asked: Slurm here tracks processes without
mkdir /mnt/nvme /mnt/top /mnt/build
mount --bind "$top/hosts/$name/nvme" /mnt/nvme
if [ -e "$top/hosts/$name/disk" ]; then
    mkdir /mnt/disk
    # A host that was killed a moment ago may still have it.
    for _ in {1..100}; do
        ! mount -t xfs -o loop "$top/hosts/$name/disk" /mnt/disk 2>/mnt/mount-error || break
        sleep 0.1
    done
    mountpoint --quiet /mnt/disk || { cat /mnt/mount-error >&2; exit 1; }
    mkdir -p /mnt/disk/pool
fi
# A /tmp of its own, in which the files that all hosts share are seen again if they lie there.
mount --bind "$top" /mnt/top
mount --bind "$build" /mnt/build
mount --bind "$top/hosts/$name/tmp" /tmp
mkdir -p "$top" "$build"
mount --bind /mnt/top "$top"
mount --bind /mnt/build "$build"
# A job starts with what its node is for.
export FOREBAY_STORE=/mnt/nvme
if [ -e "$top/site.toml" ]; then
    export FOREBAY_SITE=$top/site.toml
    # With few capabilities, as packaging/forebay-noded.service, and in the cgroup of the unit. With such a cgroup there
    # is a pool with an engine, as with packaging/forebay-noded-engine.conf.
    export FOREBAY_ENGINE_HANG_S=20 # half a minute less for tests of lost nodes
    rights=-all,+chown,+dac_read_search,+kill,+setgid,+setuid
    [ ! -e /mnt/cgroup ] || rights+=,+sys_admin
    {
        [ ! -e /mnt/cgroup ] || echo "$BASHPID" >"/mnt/cgroup/${group##*/}/cgroup.procs"
        exec "$top/restart.sh" "$top" "$name" \
            setpriv --bounding-set="$rights" --inh-caps=-all \
            "$build/bin/forebay-noded" --listen "10.77.0.${name#n}:7077" 2>>"$top/log/noded-$name"
    } &
fi
daemon=(slurmd -D -f "$SLURM_CONF")
[ ! -e "$top/site.toml" ] || daemon=("$top/restart.sh" "$top" "$name" "${daemon[@]}")
"${daemon[@]}" &
# Orphans are reaped; without a child left, this host ends.
while :; do wait -n || [ $? -ne 127 ] || exit 0; done
