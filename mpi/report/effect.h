/* Hints that were asked for and had no effect. */
#ifndef FOREBAY_MPI_EFFECT_H
#define FOREBAY_MPI_EFFECT_H

#include "report/gather.h"

#include <mpi.h>

/* How the asked value compares with what happened. */
struct effect {
  char key[MPI_MAX_INFO_KEY + 1], asked[MPI_MAX_INFO_VAL + 1], seen[MPI_MAX_INFO_VAL + 128];
};

/* Calls then() for each hint without effect. */
void effects_each(const struct joined *file, void (*then)(const struct effect *, void *),
                  void *context);

#endif
