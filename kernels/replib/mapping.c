#include "mapping.h"

#include "scramble.h"

#include <stdlib.h>

enum { CELL_COMPARTMENTS_MIN = 1000, CELL_COMPARTMENTS_SPREAD = 1000, GIDS_OF_A_RANK = 100000 };

/* Every rank draws the same sizes, as the published program does. */
static int64_t compartments_of(int64_t cell, int64_t left) {
  int64_t drawn = CELL_COMPARTMENTS_MIN + scramble((uint32_t)cell) % CELL_COMPARTMENTS_SPREAD;
  return drawn < left ? drawn : left;
}

static int64_t cells_for(int64_t compartments) {
  int64_t cells = 0;
  for (int64_t left = compartments; left > 0; cells++)
    left -= compartments_of(cells, left);
  return cells;
}

static void fill(struct mapping *mapping, int rank, int64_t first, int64_t compartments) {
  int64_t next = 0;
  for (int64_t cell = 0; cell < mapping->count; cell++) {
    int64_t size = compartments_of(cell, compartments - next);
    mapping->gids[cell] = (uint32_t)((int64_t)(rank + 1) * GIDS_OF_A_RANK + 1 + cell);
    mapping->columns[cell] = first + next;
    for (int64_t element = 0; element < size; element++)
      mapping->elements[next++] = (uint32_t)element;
  }
}

bool mapping_make(MPI_Comm comm, int64_t first, int64_t count, struct mapping *mapping) {
  int rank;
  int64_t end;
  MPI_Comm_rank(comm, &rank);
  mapping->count = cells_for(count);
  MPI_Scan(&mapping->count, &end, 1, MPI_INT64_T, MPI_SUM, comm);
  MPI_Allreduce(&mapping->count, &mapping->total, 1, MPI_INT64_T, MPI_SUM, comm);
  mapping->first = end - mapping->count;
  mapping->gids = malloc((size_t)mapping->count * sizeof *mapping->gids);
  mapping->columns = malloc((size_t)mapping->count * sizeof *mapping->columns);
  mapping->elements = malloc((size_t)count * sizeof *mapping->elements);
  bool got = mapping->gids != NULL && mapping->columns != NULL && mapping->elements != NULL;
  if (got)
    fill(mapping, rank, first, count);
  return got;
}

void mapping_free(struct mapping *mapping) {
  free(mapping->elements);
  free(mapping->columns);
  free(mapping->gids);
}
