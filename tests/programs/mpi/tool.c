/* Another tool that wraps MPI by its profiling interface: says how many writes it saw. */
#include <mpi.h>
#include <stdio.h>

static int writes;

int MPI_File_write_at(MPI_File file, MPI_Offset offset, const void *buffer, int count,
                      MPI_Datatype type, MPI_Status *status) {
  writes++;
  return PMPI_File_write_at(file, offset, buffer, count, type, status);
}

int MPI_Finalize(void) {
  fprintf(stderr, "tool: %d writes\n", writes);
  return PMPI_Finalize();
}
