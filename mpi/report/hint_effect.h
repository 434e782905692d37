/* Requested hints that had no effect. */
#ifndef FOREBAY_MPI_HINT_EFFECT_H
#define FOREBAY_MPI_HINT_EFFECT_H

#include "report/rank_merge.h"

#include <mpi.h>

/* The requested value, and what happened. */
struct hint_effect {
  char key[MPI_MAX_INFO_KEY + 1], asked[MPI_MAX_INFO_VAL + 1], seen[MPI_MAX_INFO_VAL + 128];
};

/* Calls then() for each hint without effect. */
void hints_without_effect_each(const struct merged_file *file,
                               void (*then)(const struct hint_effect *, void *), void *context);

#endif
