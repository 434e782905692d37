#!/bin/bash
# Says yes if a C program can be compiled and linked with a parallel library, and the library is for
# the MPI of the compiler: Debian has some for one MPI only, and two in a process end in a crash.
# Usage: tools/has-library.sh HEADER EXPRESSION FLAGS...   with the compiler in $MPICC
set -euo pipefail
header=$1 expression=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#include <mpi.h>\n#include <%s>\nint main(void) { MPI_Init(0, 0); return (%s) == 0; }\n' \
    "$header" "$expression" >"$scratch/probe.c"
if "${MPICC:-mpicc}" -o "$scratch/probe" "$scratch/probe.c" "$@" 2>/dev/null >&2; then
    libraries=$(ldd "$scratch/probe" 2>/dev/null | grep -cE '^[[:space:]]*libmpi(ch)?\.so' || true)
    if [ "$libraries" -le 1 ]; then
        echo yes
        exit
    fi
fi
echo no
