/* Calls after which other ranks may use what this one has written: lazy writes go before them, and
 * what is cached is forgotten after them.
 *
 * MPI asks for MPI_File_sync there. But programs that write, wait at a barrier, and read or write
 * what others wrote are common, and right on other file systems. */
#include "base/real_call.h"
#include "record/lazy_io.h"

#include <mpi.h>

#define BARRIER(SYMBOL)                                                                            \
  int SYMBOL(MPI_Comm comm) {                                                                      \
    lazy_write_back_all();                                                                         \
    int code = REAL(SYMBOL)(comm);                                                                 \
    lazy_forget_all();                                                                             \
    return code;                                                                                   \
  }

BARRIER(MPI_Barrier)
BARRIER(PMPI_Barrier)
