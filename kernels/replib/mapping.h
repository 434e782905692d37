/* Which cell each compartment of a report belongs to: the tables of an HDF5 report. */
#ifndef REPLIB_MAPPING_H
#define REPLIB_MAPPING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct mapping {
  int64_t first, count, total; /* cells: before those of this rank, of this rank, of all ranks */
  uint32_t *gids;              /* a cell's number: (rank + 1) * 100,000 and up, from 1 */
  int64_t *columns;            /* a cell's first compartment among those of all ranks */
  uint32_t *elements;          /* a compartment's number in its cell, from 0 */
};

/* Collective. The cells of this rank's `count` compartments, which are those from `first` on, have
 * 1000 to 1999 each, the last one what remains. False if memory is short; mapping_free is due all
 * the same. */
bool mapping_make(MPI_Comm comm, int64_t first, int64_t count, struct mapping *mapping);
void mapping_free(struct mapping *mapping);

#endif
