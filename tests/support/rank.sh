#!/bin/bash
# An MPI rank of a test bed: the command in the mount namespace of its node, the network stays the head's, so that
# MPI runs over shared memory. FOREBAY_BED_KEEPERS has a process of each node.
# Usage: rank.sh COMMAND...
set -euo pipefail
read -ra keepers <<<"$FOREBAY_BED_KEEPERS"
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
number=$(((rank + FOREBAY_BED_SHIFT) % ${#keepers[@]}))
export FOREBAY_BED_NODE=$((number + 1))
# What let an ordinary user's rank enter the node is not the command's.
exec nsenter --mount="/proc/${keepers[number]}/ns/mnt" \
    setpriv --inh-caps=-all --ambient-caps=-all env --chdir="$FOREBAY_BED_DIRECTORY" "$@"
