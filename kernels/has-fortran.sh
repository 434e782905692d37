#!/bin/bash
# Says yes if a Fortran file can be compiled, and linked with C by the C compiler and these flags.
# Usage: kernels/has-fortran.sh FLAGS...   with the compilers in $FC and $MPICC
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/probe.f90" <<'END'
subroutine probe() bind(c)
  write (*, *) 'reached'
end subroutine probe
END
echo 'void probe(void); int main(void) { probe(); return 0; }' >"$scratch/main.c"
if (cd "$scratch" && "${FC:-gfortran}" -c probe.f90 &&
    "${MPICC:-mpicc}" -o probe main.c probe.o "$@") >/dev/null 2>&1; then
    echo yes
else
    echo no
fi
