/* What is timed: compute and write dump after dump, or read them, and then check. */
#ifndef BTIO_BENCHMARK_H
#define BTIO_BENCHMARK_H

#include "field.h"
#include "options.h"
#include "shared_file.h"

struct benchmark {
  MPI_Comm comm;
  struct options options;
  struct deck deck;
  struct partition partition;
  struct layout layout;
  char path[DIRECTORY_BYTES_MAX + 32];
  double *values;  /* one dump of this rank */
  double *scratch; /* what is relaxed between dumps; NULL if nothing is */

  /* results of this rank; the mismatches are of all ranks */
  struct io_times io;
  double compute_s; /* relaxation, its Allreduce, and filling in the values */
  double verify_s;  /* everything --verify adds, reading included after a write */
  int64_t mismatches;
};

/* Collective. False if memory is short on any rank. */
bool benchmark_allocate(struct benchmark *benchmark);
void benchmark_free(struct benchmark *benchmark);

/* Collective. False, with the reason printed, if an MPI-IO call failed or the file has a wrong
 * size; wrong values are printed and counted, but do not end the run. */
bool benchmark_run(struct benchmark *benchmark);

#endif
