#include "partition.h"

#include "harness/message.h"
#include "harness/share.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The whole root, or 0 if ranks is no square. */
static int square_root(int ranks) {
  int side = 1;
  while (side < ranks / side)
    side++;
  return side * side == ranks ? side : 0;
}

/* Cell number `index` of a rank is in z slab `index`; from one z slab to the next the rank moves
 * one slab up in x and one slab down in y, around the ends. */
static void place_cell(const struct partition *partition, int rank, int index, struct cell *cell) {
  int side = partition->side;
  int slab[AXES] = {(rank % side + index) % side, (rank / side - index + side) % side, index};
  for (int axis = 0; axis < AXES; axis++)
    share_of(partition->grid[axis], side, slab[axis], &cell->low[axis], &cell->size[axis]);
}

int64_t cell_points(const struct cell *cell) {
  return (int64_t)cell->size[0] * cell->size[1] * cell->size[2];
}

static bool check_ranks_square(int rank, int ranks, int side) {
  if (side == 0)
    complain_once(rank,
                  "%d ranks are not a square number\n"
                  "hint: run on 1, 4, 9, 16, 25, ... ranks, for example mpiexec -n 4",
                  ranks);
  return side != 0;
}

static bool check_cell_sizes(int rank, const struct deck *deck, int side) {
  for (int axis = 0; axis < AXES; axis++) {
    if (deck->grid[axis] / side >= CELL_POINTS_MIN)
      continue;
    complain_once(rank,
                  "%d points along %c in %d slabs leave a cell of %d points, at least %d needed\n"
                  "hint: %d ranks need at least %d points along each axis",
                  deck->grid[axis], "xyz"[axis], side, deck -> grid[axis] / side, CELL_POINTS_MIN,
                  side * side, side * CELL_POINTS_MIN);
    return false;
  }
  return true;
}

/* MPI-IO libraries count the bytes of one call in an int, whatever type the caller describes. */
static bool check_dump_size(int rank, MPI_Comm comm, int64_t points) {
  int64_t bytes = points * COMPONENTS * (int64_t)sizeof(double), largest;
  MPI_Allreduce(&bytes, &largest, 1, MPI_INT64_T, MPI_MAX, comm);
  if (largest > INT_MAX)
    complain_once(rank,
                  "a rank's share of one dump is %lld bytes, one MPI-IO call moves at most %d\n"
                  "hint: run on more ranks or use a smaller grid",
                  (long long)largest, INT_MAX);
  return largest <= INT_MAX;
}

bool partition_make(const struct deck *deck, MPI_Comm comm, struct partition *partition) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  int side = square_root(ranks);
  if (!check_ranks_square(rank, ranks, side) || !check_cell_sizes(rank, deck, side))
    return false;
  *partition = (struct partition){.side = side};
  memcpy(partition->grid, deck->grid, sizeof partition->grid);
  partition->cells = calloc((size_t)side, sizeof *partition->cells);
  if (partition->cells == NULL)
    abort(); /* a few hundred bytes: nothing sensible is left to do */
  for (int index = 0; index < side; index++) {
    place_cell(partition, rank, index, &partition->cells[index]);
    partition->points += cell_points(&partition->cells[index]);
  }
  if (!check_dump_size(rank, comm, partition->points)) {
    partition_free(partition);
    return false;
  }
  for (int axis = 0; axis < AXES; axis++)
    partition->padded[axis] = (deck->grid[axis] + side - 1) / side + 2 * GHOST;
  return true;
}

void partition_free(struct partition *partition) {
  free(partition->cells);
  partition->cells = NULL;
}

/* Where point (x, y, z) of a cell is in a padded array of all cells, in points. */
static size_t buffer_point(const struct partition *partition, int cell, int z, int y, int x) {
  size_t plane = (size_t)cell * partition->padded[2] + (size_t)(z + GHOST);
  size_t line = plane * partition->padded[1] + (size_t)(y + GHOST);
  return line * partition->padded[0] + (size_t)(x + GHOST);
}

static int64_t grid_point(const struct partition *partition, int z, int y, int x) {
  return ((int64_t)z * partition->grid[1] + y) * partition->grid[0] + x;
}

size_t partition_padded_points(const struct partition *partition) {
  return (size_t)partition->side * partition->padded[2] * partition->padded[1] *
         partition->padded[0];
}

void partition_each_row_of(const struct partition *partition, int index,
                           void (*visit)(const struct row *row, void *context), void *context) {
  const struct cell *cell = &partition->cells[index];
  for (int z = 0; z < cell->size[2]; z++)
    for (int y = 0; y < cell->size[1]; y++) {
      struct row row = {
          .grid_point = grid_point(partition, cell->low[2] + z, cell->low[1] + y, cell->low[0]),
          .buffer_point = buffer_point(partition, index, z, y, 0),
          .length = cell->size[0],
      };
      visit(&row, context);
    }
}

void partition_each_row(const struct partition *partition,
                        void (*visit)(const struct row *row, void *context), void *context) {
  for (int index = 0; index < partition->side; index++)
    partition_each_row_of(partition, index, visit, context);
}
