#!/bin/bash
# One node of a test bed, in its own network, mount and name namespace.
# Usage: bed_node.sh NAME TOP ADDRESS STORE_BYTES VISIBLE...
set -euo pipefail
name=$1 top=$2 address=$3 store_bytes=$4
visible=("${@:5}")
hostname "$name"
mount -t tmpfs -o mode=755 none /mnt
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t tmpfs -o mode=1777 none /tmp
mkdir /mnt/nvme /mnt/build /mnt/python
mkdir -m 1777 /mnt/bb
mount -t tmpfs -o "mode=1777,size=$store_bytes" none /mnt/nvme
mount --bind /run/build /mnt/build
mount --bind /run/python /mnt/python
for number in "${!visible[@]}"; do
    [ "/run/visible/$number" -ef "${visible[number]}" ] && continue
    mkdir -p "${visible[number]}"
    mount --rbind "/run/visible/$number" "${visible[number]}"
done
mount -t tmpfs -o mode=755 none /run
mkdir /run/sshd /run/lock
umask 022
"$(PATH=$PATH:/usr/sbin command -v sshd)" -D -e -o "ListenAddress=$address" -o "PidFile=$top/hosts/$name/sshd" \
    >/dev/null &
wait $! || true
exec sleep infinity
