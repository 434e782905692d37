/* Open MPI or MPICH: which of the two the program has.
 *
 * A job's scripts may use both, and one LD_PRELOAD is set for all of them. So a process that finds
 * itself with the library of the other family is started anew with its sibling, before anything of
 * the program has run. Where the program loads its MPI only later, nothing can be exchanged any
 * more, and the library lets all calls through untouched. */
#ifndef FOREBAY_MPI_EXCHANGE_H
#define FOREBAY_MPI_EXCHANGE_H

#include <mpi.h>
#include <stdbool.h>

#ifdef OPEN_MPI
#define FAMILY "Open MPI"
/* Open MPI has an object, MPICH a function, that programs of that family use by name. */
#define FAMILY_MARKER "ompi_mpi_comm_world"
#define OTHER_MARKER "MPIR_Dup_fn"
#define SIBLING "mpich"
#else
#define FAMILY "MPICH"
#define FAMILY_MARKER "MPIR_Dup_fn"
#define OTHER_MARKER "ompi_mpi_comm_world"
#define SIBLING "openmpi"
#endif

/* Whether the environment says that this process is not the one of several that speaks for all. */
bool exchange_is_silent_rank(void);

#endif
