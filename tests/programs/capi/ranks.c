/* ranks DIRECTORY TARGET: each rank of an MPI program stages its file out and waits for it. */
#include <datawarp.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  char from[4096], to[4096];
  int rank, wrong;
  FILE *file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(from, sizeof from, "%s/rank.%d", argv[1], rank);
  snprintf(to, sizeof to, "%s/rank.%d", argv[2], rank);
  file = fopen(from, "w");
  fprintf(file, "rank %d\n", rank);
  fclose(file);
  wrong = dw_stage_file_out(from, to, DW_STAGE_IMMEDIATE) != 0 || dw_wait_file_stage(from) != 0;
  MPI_Finalize();
  return wrong;
}
