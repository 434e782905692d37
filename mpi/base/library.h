/* The MPI as this library itself uses it.
 *
 * Every function and predefined object is looked up when the program initialises MPI. So the
 * library has no unresolved symbols: a shell or a launcher that inherits LD_PRELOAD loads it and
 * never notices. */
#ifndef FOREBAY_MPI_LIBRARY_H
#define FOREBAY_MPI_LIBRARY_H

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

#define LIBRARY_FUNCTIONS(X)                                                                       \
  X(Bcast)                                                                                         \
  X(Comm_free)                                                                                     \
  X(Comm_get_parent)                                                                               \
  X(Comm_rank)                                                                                     \
  X(Comm_size)                                                                                     \
  X(Comm_split)                                                                                    \
  X(File_call_errhandler)                                                                          \
  X(File_get_info)                                                                                 \
  X(Gather)                                                                                        \
  X(Get_library_version)                                                                           \
  X(Info_create)                                                                                   \
  X(Info_dup)                                                                                      \
  X(Info_free)                                                                                     \
  X(Info_get)                                                                                      \
  X(Info_get_nkeys)                                                                                \
  X(Info_get_nthkey)                                                                               \
  X(Info_set)                                                                                      \
  X(Recv)                                                                                          \
  X(Send)                                                                                          \
  X(Type_size_x)

struct library {
#define DECLARE(name) __typeof__(&PMPI_##name) name;
  LIBRARY_FUNCTIONS(DECLARE)
#undef DECLARE
  MPI_Comm world, no_comm;
  MPI_Info no_info;
  MPI_Datatype byte, no_type;
};

extern struct library library;

/* Whether the program's MPI is of the family that this file was built for. Handles of the other
 * have another size, and any call would destroy them. */
bool library_is_the_programs(void);

/* Looks everything up; false if something is missing. */
bool library_bind(void);

/* First line of what the MPI says it is. */
const char *library_version(void);

#endif
