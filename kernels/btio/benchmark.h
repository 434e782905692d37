/* What is timed: compute and write dump after dump, or read them, and then check. */
#ifndef BTIO_BENCHMARK_H
#define BTIO_BENCHMARK_H

#include "dump_file.h"
#include "field.h"
#include "harness/report.h"
#include "options.h"

struct benchmark {
  MPI_Comm comm;
  struct options options;
  struct deck deck;
  const struct variant *variant;
  struct partition partition;
  struct layout layout;
  char path[PATH_BYTES_MAX];
  double *values;       /* one dump of this rank */
  double *scratch;      /* what is relaxed between dumps; NULL if nothing is */
  struct report report; /* compute_s is relaxation, its Allreduce, and filling in the values */
};

/* Collective. False if memory is short on any rank. */
bool benchmark_allocate(struct benchmark *benchmark);
void benchmark_free(struct benchmark *benchmark);

/* Of data that all ranks together write and read, without what --verify reads. */
int64_t benchmark_bytes(const struct benchmark *benchmark);

/* Collective. False, with the reason printed, if an I/O call failed or a file has a wrong size;
 * wrong values are printed and counted, but do not end the run. */
bool benchmark_run(struct benchmark *benchmark);

#endif
