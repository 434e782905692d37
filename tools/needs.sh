#!/bin/bash
# Installs what a make target needs and this machine lacks; what it cannot install, it names.
# Usage: tools/needs.sh build|test|bench|check|install
set -euo pipefail

packages=()
optional=()
need() { # need PACKAGE COMMAND...: the package is needed if the command fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || packages+=("$package")
}
want() { # the same for what is left out of the build where it cannot be had
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || optional+=("$package")
}
has_hdf5() {
    pkg-config --exists hdf5-openmpi || pkg-config --exists hdf5-mpich || has_header hdf5.h
}
has_library() { # has_library NAME: the loader finds it
    /sbin/ldconfig -p | grep -w "$1"
}
has_daemon() { # has_daemon NAME: also where an ordinary user's PATH does not lead
    PATH=$PATH:/usr/sbin:/sbin command -v "$1"
}
has_header() { # has_header NAME FLAG...: the MPI compiler finds it
    local name=$1
    shift
    mpicc "$@" -E -x c - <<<"#include <$name>"
}

rust=0
if found=$(cargo --version 2>/dev/null); then rust=$(cut -d' ' -f2 <<<"$found"); fi
if [ "$(printf '%s\n' 1.88 "$rust" | sort -V | head -1)" != 1.88 ]; then
    echo "error: Rust 1.88 or newer is needed; found: ${found:-none}" >&2
    echo "hint: install it with rustup; Debian 12's own is too old" >&2
    exit 1
fi
need libopenmpi-dev command -v mpicc
need openmpi-bin command -v mpiexec
need gcc command -v gcc
need python3-venv python3 -c 'import ensurepip, venv'
need libpangoft2-1.0-0 has_library libpangoft2-1.0.so.0
want libpnetcdf-dev has_header pnetcdf.h
want pkg-config command -v pkg-config
want libhdf5-openmpi-dev has_hdf5
want gfortran command -v gfortran
case ${1:-build} in
build) ;;
test | bench)
    [ "$1" = test ] || need rsync command -v rsync
    [ "$1" = test ] || need iperf3 command -v iperf3
    need hdf5-tools command -v h5ls
    # Beside Open MPI, whose mpicc and mpiexec stay the system's: its alternatives have the higher priority.
    need mpich command -v mpiexec.mpich
    need libmpich-dev command -v mpicc.mpich
    # A real Slurm; it brings no MPI of its own.
    need slurm-wlm has_daemon slurmctld
    need munge has_daemon munged
    need iproute2 has_daemon ip
    # The nodes of a test bed: each runs its own sshd, and one a file system that is not coherent.
    need openssh-server has_daemon sshd
    need openssh-client command -v ssh
    need bindfs command -v bindfs
    # Programs that make their I/O by these libraries.
    need liburing2 has_library liburing.so.2
    need libaio1 has_library libaio.so.1
    need git command -v git
    need gfortran command -v gfortran
    need tcsh command -v tcsh
    need environment-modules test -r /usr/share/modules/init/bash
    need man-db command -v manpath
    need procps command -v pgrep
    need strace command -v strace
    need bubblewrap command -v bwrap
    # A FUSE file system with caches, which the conformance checks must find not coherent.
    need mergerfs command -v mergerfs
    need e2fsprogs has_daemon mkfs.ext2
    # It runs burst_buffer.lua with the arguments of later versions of Slurm.
    need lua5.1 command -v lua5.1
    # A kernel with project quotas, and file systems for it.
    need user-mode-linux command -v linux.uml
    need xfsprogs has_daemon mkfs.xfs
    need chromium command -v chromium
    # The pictures of the documentation, which Chromium shows.
    need graphviz command -v dot
    # Nextflow and what fetches it.
    need default-jre-headless command -v java
    need maven command -v mvn
    # The engine of jobs of several nodes.
    for daemon in ceph-mon ceph-osd ceph-mds ceph-fuse; do need "$daemon" has_daemon "$daemon"; done
    need ceph-base has_daemon monmaptool
    need librados2 has_library librados.so.2
    need libcephfs2 has_library libcephfs.so.2
    need fuse3 has_daemon fusermount3
    # Layouts and quotas of CephFS.
    need attr command -v setfattr
    ;;
install)
    need python3-venv tools/install_python.sh
    ;;
check)
    need clang-format command -v clang-format
    need shellcheck command -v shellcheck
    need graphviz command -v dot
    ;;
*)
    echo "usage: $0 build|test|bench|check|install" >&2
    exit 2
    ;;
esac

can_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
}
if [ ${#packages[@]} -eq 0 ]; then
    [ ${#optional[@]} -eq 0 ] && exit 0
    if ! can_install; then
        echo "note: without ${optional[*]} some kernels are left out" >&2
        exit 0
    fi
fi
packages+=("${optional[@]}")
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
        echo "error: missing: ${packages[*]}" >&2
        echo "hint: as root: apt-get install ${packages[*]}" >&2
        exit 1
    fi
fi
command -v apt-get >/dev/null || {
    echo "error: missing: ${packages[*]} (names of Debian packages), and there is no apt-get" >&2
    echo "hint: install what they hold with your system's package manager" >&2
    exit 1
}
echo "installing ${packages[*]}"
"${as_root[@]}" apt-get -q update
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -q install -y --no-install-recommends "${packages[@]}"
