/* Built in the place of a kernel whose library was not found. */
#include "harness/message.h"
#include "harness/run.h"

#include <mpi.h>

const char kernel_name[] = KERNEL_NAME;

static int run(int argc, char **argv, double start) {
  (void)argc;
  (void)argv;
  (void)start;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  complain_once(rank, "left out of this build: its library was not found\n"
                      "hint: kernels/README.md names it; install it, then make");
  return STATUS_USAGE;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
