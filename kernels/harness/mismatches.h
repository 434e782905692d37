/* What a comparison of read values with the expected ones found. */
#ifndef HARNESS_MISMATCHES_H
#define HARNESS_MISMATCHES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct mismatches {
  int64_t count;
  int64_t first; /* index, from 0, of the first wrong value; INT64_MAX if there is none */
  double found;  /* the value found there */
};

static const struct mismatches no_mismatches = {.first = INT64_MAX};

static inline void mismatches_add(struct mismatches *wrong, int64_t index, double found) {
  wrong->count++;
  if (index >= wrong->first)
    return;
  wrong->first = index;
  wrong->found = found;
}

/* Collective: the sum over all ranks. *names_it is true on the rank that has the first wrong value
 * and shall name it. */
int64_t mismatches_join(MPI_Comm comm, const struct mismatches *mine, bool *names_it);

#endif
