/* How many bytes each rank writes in a reporting step, and where its block begins. */
#ifndef REPLIB_DISTRIBUTION_H
#define REPLIB_DISTRIBUTION_H

#include "options.h"

#include <mpi.h>
#include <stdint.h>

struct distribution_of_rank {
  int64_t offset_bytes; /* of this rank's block in a step */
  int64_t block_bytes;  /* a multiple of a float's size, never 0 */
  int64_t step_bytes;   /* of all ranks */
};

/* Collective. False, with the reason printed, if the file of block sizes cannot be used, a rank
 * has nothing to write, or a block is too large for one MPI-IO call. */
bool distribution_make(const struct options *options, MPI_Comm comm,
                       struct distribution_of_rank *distribution);

#endif
