#!/bin/bash
# A machine whose kernel has project quotas: the first process of user-mode Linux. It sees the files of this machine,
# mounts the file system of /dev/ubdb with quotas, starts munged and forebay-noded, runs TOP/steps and powers off.
# Variables from the kernel's command line: TOP, BUILD, KIND, MODULES.
exec >"$TOP/said" 2>&1
set -u
export PATH=$BUILD/bin:/usr/sbin:/sbin:/usr/bin:/bin FOREBAY_SITE=$TOP/site.toml TOP BUILD
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /run
mount -t tmpfs none /mnt
hostname n1
ip link set lo up
printf '127.0.0.1 localhost n1\n' >/run/hosts
mount --bind /run/hosts /etc/hosts
for name in quota_tree quota_v2; do
    [ -e "$MODULES/$name.ko" ] && python3 - "$MODULES/$name.ko" <<'PYTHON'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(313, os.open(sys.argv[1], os.O_RDONLY), b"", 0):  # finit_module
    raise SystemExit(f"{sys.argv[1]}: {os.strerror(ctypes.get_errno())}")
PYTHON
done
mkdir -p /mnt/disk /run/munge
mount -t "$KIND" -o prjquota /dev/ubdb /mnt/disk
mkdir -p /mnt/disk/pool
chown munge:munge /run/munge
(umask 077 && head -c 128 /dev/urandom >/run/munge/key)
chown munge:munge /run/munge/key
setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --key-file=/run/munge/key \
    --socket=/run/munge/socket --pid-file=/run/munge/pid --seed-file=/run/munge/seed --log-file=/run/munge/log &
for _ in $(seq 1000); do [ -S /run/munge/socket ] || sleep 0.01; done
forebay-noded --listen 127.0.0.1:7077 --name n1 &
# shellcheck source=/dev/null
. "$TOP/steps"
sync
echo "the end"
exec 1>/dev/null 2>&1
echo o >/proc/sysrq-trigger
sleep 60
