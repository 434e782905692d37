/* Each rank writes two blocks of a file through MPI-IO, and one by itself. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int rank;
  char block[1024] = {0};
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < 2; i++)
    MPI_File_write_at_all(file, (2 * i + rank) * 1024, block, 1024, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  FILE *own = fopen(rank == 0 ? "own-0" : "own-1", "w");
  fwrite(block, 1, sizeof block, own);
  fclose(own);
  return MPI_Finalize();
}
