#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* own_files PATH: each rank writes PATH.RANK by MPI-IO, a few blocks. */
enum { BLOCK_BYTES = 1 << 16, BLOCKS = 64 };

int main(int argc, char **argv) {
  static char block[BLOCK_BYTES];
  char path[4096];
  int rank;
  MPI_File file;
  if (argc != 2)
    return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s.%d", argv[1], rank);
  if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file))
    MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < BLOCKS; i++)
    if (MPI_File_write_at(file, (MPI_Offset)i * BLOCK_BYTES, block, BLOCK_BYTES, MPI_BYTE,
                          MPI_STATUS_IGNORE))
      MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
