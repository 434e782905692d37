/* The grid, cut into patches along west_east and south_north; a patch has all levels. */
#ifndef WRF_DOMAIN_H
#define WRF_DOMAIN_H

#include "options.h"

#include <mpi.h>
#include <stdint.h>

enum { LEVELS, NORTH, EAST, DIRECTIONS }; /* the slowest first, as in a file */

struct domain {
  MPI_Comm comm;
  int size[DIRECTIONS];
  int low[DIRECTIONS]; /* of this rank's patch */
  int count[DIRECTIONS];
  int64_t points; /* of the whole grid */
  float *values;  /* room for a patch with all levels */
};

/* Collective. False, with the reason printed by rank 0, if there are more ranks than points in a
 * direction or a patch is too large for one MPI-IO call. */
bool domain_make(const struct options *options, MPI_Comm comm, struct domain *domain);

#endif
