/* The datatypes of a trace, built again. */
#ifndef FOREBAY_REPLAY_TYPES_H
#define FOREBAY_REPLAY_TYPES_H

#include "reader.h"

#include <mpi.h>

struct built_type {
  MPI_Datatype type;
  MPI_Count extent, true_lower, true_extent;
  bool is_built, is_predefined;
};

struct types {
  const struct reader *reader;
  struct built_type *items; /* by number */
  size_t room;
};

/* Built when first asked for; NULL if it cannot be. */
const struct built_type *types_get(struct types *types, int64_t number);

void types_free(struct types *types);

#endif
