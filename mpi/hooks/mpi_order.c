/* Calls after which other ranks may write what this one has written: lazy writes go before them.
 *
 * MPI asks for MPI_File_sync there. But programs that fill a file, wait at a barrier and write into
 * it are common, and their last writes must be those that stay. */
#include "base/real_call.h"
#include "record/lazy_io.h"

#include <mpi.h>

#define BARRIER(SYMBOL)                                                                            \
  int SYMBOL(MPI_Comm comm) {                                                                      \
    lazy_write_back_all();                                                                         \
    return REAL(SYMBOL)(comm);                                                                     \
  }

BARRIER(MPI_Barrier)
BARRIER(PMPI_Barrier)
