#include "run.h"

#include <mpi.h>
#include <signal.h>

int run_kernel(int argc, char **argv, int (*run)(int argc, char **argv, double start)) {
  /* Beyond a file size limit (ulimit -f) a write shall fail with a message, not kill the rank. */
  signal(SIGXFSZ, SIG_IGN);
  MPI_Init(&argc, &argv);
  int status = run(argc, argv, MPI_Wtime());
  MPI_Finalize();
  return status;
}
