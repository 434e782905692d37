/* The eight values of every particle, one array each, as VPIC-IO has them. */
#ifndef VPIC_PARTICLES_H
#define VPIC_PARTICLES_H

#include "harness/mismatches.h"

#include <stddef.h>

enum { DATASETS = 8, VALUE_BYTES = 4 };

struct dataset {
  const char *name;
  bool whole; /* int, else float */
};

extern const struct dataset datasets[DATASETS]; /* in the order in which they are written */

struct particles {
  int64_t total; /* of all ranks */
  int64_t first; /* of this rank */
  int count;     /* of this rank */
  void *values[DATASETS];
};

/* False if memory is short; particles_free is due all the same. */
bool particles_allocate(struct particles *particles);
void particles_free(struct particles *particles);

/* A value is its index over the whole run, (step * 8 + dataset) * total + particle; values.h. */
void particles_fill(struct particles *particles, int step);
void particles_poison(struct particles *particles);
void particles_compare(const struct particles *particles, int step, struct mismatches *wrong);

#endif
