/* The diagonal multi-partition of NAS BT.
 *
 * q*q ranks cut the grid into q*q*q cells. Every rank owns q of them, one in each slab along every
 * axis, so that a sweep along any axis keeps all ranks busy. In the file this scatters a rank's
 * points all over each dump. */
#ifndef BTIO_PARTITION_H
#define BTIO_PARTITION_H

#include "deck.h"

#include <stddef.h>

enum {
  GHOST = 2,          /* ghost layers on each side of a cell in memory */
  CELL_POINTS_MIN = 3 /* BT's limit along each axis */
};

struct cell {
  int low[AXES];  /* first point in the grid */
  int size[AXES]; /* points along x, y, z */
};

int64_t cell_points(const struct cell *cell);

struct partition {
  int side;           /* q: cells of a rank, and slabs along an axis */
  int grid[AXES];     /* points along x, y, z */
  int padded[AXES];   /* the largest cell of any rank, ghost layers included */
  struct cell *cells; /* the q cells of this rank */
  int64_t points;     /* points of this rank in one dump, ghosts not counted */
};

/* Collective. False, with the reason printed by rank 0, if the ranks are no square, a cell is too
 * small, or a rank's share of one dump is too large for one MPI-IO call. */
bool partition_make(const struct deck *deck, MPI_Comm comm, struct partition *partition);

void partition_free(struct partition *partition);

/* Points of an array that holds all cells of this rank with their ghost layers. */
size_t partition_padded_points(const struct partition *partition);

/* A run of points along x inside one cell. */
struct row {
  int64_t grid_point;  /* index of its first point in the grid: (z * ny + y) * nx + x */
  size_t buffer_point; /* index of its first point in a padded array */
  int length;          /* points */
};

/* Calls visit for every row of one cell of this rank, in the order of the grid. */
void partition_each_row_of(const struct partition *partition, int cell,
                           void (*visit)(const struct row *row, void *context), void *context);

/* The same for all cells, one after the other. */
void partition_each_row(const struct partition *partition,
                        void (*visit)(const struct row *row, void *context), void *context);

#endif
