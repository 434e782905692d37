/* Which values each rank writes in a reporting step, and where in it. */
#ifndef REPLIB_DISTRIBUTION_H
#define REPLIB_DISTRIBUTION_H

#include "options.h"

#include <mpi.h>
#include <stdint.h>

/* Values (floats) side by side. */
struct run {
  int64_t first; /* counted from the beginning of a step */
  int64_t count; /* never 0 */
};

struct distribution_of_rank {
  struct run *runs; /* of this rank, in the order of the report */
  int64_t run_count;
  int64_t values;      /* of this rank in a step, never 0; an int can hold their bytes */
  int64_t step_values; /* of all ranks */
};

/* Collective. False, with the reason printed, if the file of block sizes cannot be used, a rank
 * has nothing to write, or its share is too large for one MPI-IO call. Call distribution_free in
 * each case. */
bool distribution_make(const struct options *options, MPI_Comm comm,
                       struct distribution_of_rank *distribution);
void distribution_free(struct distribution_of_rank *distribution);

#endif
