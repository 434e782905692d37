/* stderr_file LOG PATH: stderr goes to a file that the program opens itself, then MPI-IO is used.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_File file;
  if (argc != 3 || freopen(argv[1], "w", stderr) == NULL)
    return 2;
  MPI_Init(&argc, &argv);
  MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
