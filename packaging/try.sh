#!/bin/bash
# Tries what make dist, make wheel and make deb made, as an ordinary user, with no compiler, in root file systems
# of other distributions that mmdebstrap makes. Needs root, and Debian's packages.
# Usage: packaging/try.sh [SUITE...] (default: bullseye bookworm)
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mmdebstrap >/dev/null || apt-get install -q -y mmdebstrap
tarball=$(ls build/dist/forebay-*-linux-x86_64.tar.gz)
wheel=$(ls build/dist/forebay-*.whl)
deb=$(ls build/dist/forebay_*_amd64.deb)
bundle=$(ls build/dist/ceph-*-x86_64.tar.gz)
[ $# -gt 0 ] || set -- bullseye bookworm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for suite; do
    tree=$work/$suite
    # Python for the example and for pip, FUSE for the engine; no compiler, no MPI, no Ceph.
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,fuse3 "$suite" "$tree"
    install -d -o 1000 -g 1000 "$tree/home/user"
    echo 'user:x:1000:1000::/home/user:/bin/bash' >>"$tree/etc/passwd"
    ln -sf /proc/self/mounts "$tree/etc/mtab"
    install -m 644 "$tarball" "$wheel" "$bundle" "$tree/home/user/"
    cp "$deb" "$tree/tmp/forebay.deb"
    chroot "$tree" dpkg --install /tmp/forebay.deb
    cat >"$tree/home/user/try.sh" <<'TRY'
set -euo pipefail
cd
! command -v gcc cc mpicc ceph-mon
tar -xzf forebay-*.tar.gz
tar -xzf ceph-*.tar.gz
program=$(echo ~/forebay-*/bin/forebay)
try() { # try FOREBAY: the first job in a new directory
    "$1" --version
    "$1" doctor | head -4
    rm -rf job && cp -r ~/forebay-*/share/forebay/first-job job
    (cd job && "$1" run job.sh && [ "$(ls out | wc -l)" -eq 10 ])
    # The error for a wrong name lists the profiles that are installed.
    { "$1" run --engine-profile none job/job.sh 2>&1 || true; } | grep 'the profiles are beeond, '
}
try "$program"
try /usr/bin/forebay
# The engine of the bundle starts, and keeps what it promises on one node.
# No other node is reached, so the launcher is never called.
"$program" doctor --engine ceph --engine-root ~/ceph-*/ --nodes "$(hostname)" --store memory --launcher 'ssh {node}'
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python3 -m venv venv
    venv/bin/pip install -q --no-deps forebay-*.whl # its one dependency is not for this
    venv/bin/python -c 'from forebay import stage'
    try ~/venv/bin/forebay
else
    echo "no Python 3.11 here: the wheel is not tried"
fi
TRY
    echo "== $suite: $(chroot "$tree" /sbin/ldconfig --version | head -1)"
    # Namespaces of its own, so that /proc and /dev/shm of the root file system are there and end with it.
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys"
        # Users may open it on machines that load the kernel module as distributions do.
        mknod -m 666 "$1/run/fuse" c 10 229 && mount --bind "$1/run/fuse" "$1/dev/fuse"
        exec chroot "$1" setpriv --reuid=1000 --regid=1000 --clear-groups \
            env -i HOME=/home/user USER=user PATH=/usr/bin:/bin bash /home/user/try.sh' try "$tree"
done
