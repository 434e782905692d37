#!/bin/bash
# The head of a test bed and its nodes. The first process of its own namespaces (nodes.py starts it): when its
# standard input or it itself ends, every process, mount and network interface made here is gone with it.
# Usage: bed.sh TOP BUILD PYTHON SUBNET STORE_BYTES COUNT VISIBLE...
set -euo pipefail
top=$1 build=$2 python=$3 subnet=$4 store_bytes=$5 count=$6
visible=("$top" "${@:7}")
hostname head
# shellcheck source=tests/support/bridge.sh
. "$top/bridge.sh"
make_bridge "$subnet.100/24"
for file in hosts passwd group shadow; do
    mount --bind "$top/etc/$file" "/etc/$file"
done
mount --bind "$top/ssh" /etc/ssh
# Every user may mount FUSE, as systems allow it that are set up for it.
mknod -m 666 /run/fuse c 10 229
mount --bind /run/fuse /dev/fuse
mountpoint -q /sys/fs/fuse/connections || mount -t fusectl none /sys/fs/fuse/connections
mount -t tmpfs -o mode=1777 none "$top/mpi"

# A node's own /tmp hides what is below the machine's; from here it is bound there again.
for number in "${!visible[@]}"; do
    mkdir -p "/run/visible/$number"
    mount --rbind "${visible[number]}" "/run/visible/$number"
done
mkdir /run/build /run/python
mount --bind "$build" /run/build
mount --bind "$python" /run/python

for ((number = 1; number <= count; number++)); do
    plug_in "$number" "$subnet.$number/24"
done
# All namespaces of the machine share one table of neighbours, which has room for 1,024. Entries that stay do not count.
# With fewer nodes the kernel asks, and finds out when a node is gone.
((count <= 16)) || introduce "$count" "$subnet"
for ((number = 1; number <= count; number++)); do
    nsenter --net="/run/netns/n$number" unshare --mount --uts \
        "$top/bed_node.sh" "n$number" "$top" "$subnet.$number" "$store_bytes" "${visible[@]}" \
        </dev/null 2>"$top/hosts/n$number/log" &
done
read -r || true # bash reaps orphans meanwhile
