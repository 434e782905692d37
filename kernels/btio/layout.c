#include "layout.h"

#include <stdlib.h>

/* MPI lists the slowest axis first, the partition lists x first. */
static void reversed(const int from[AXES], int to[AXES]) {
  for (int axis = 0; axis < AXES; axis++)
    to[AXES - 1 - axis] = from[axis];
}

static MPI_Datatype cell_in_file(const struct partition *partition, int index, MPI_Datatype point) {
  int sizes[AXES], subsizes[AXES], starts[AXES];
  reversed(partition->grid, sizes);
  reversed(partition->cells[index].size, subsizes);
  reversed(partition->cells[index].low, starts);
  MPI_Datatype type;
  MPI_Type_create_subarray(AXES, sizes, subsizes, starts, MPI_ORDER_C, point, &type);
  return type;
}

/* The cell index is the fourth, slowest dimension of the padded array. */
static MPI_Datatype cell_in_memory(const struct partition *partition, int index,
                                   MPI_Datatype point) {
  int sizes[AXES + 1] = {partition->side}, subsizes[AXES + 1] = {1};
  int starts[AXES + 1] = {index, GHOST, GHOST, GHOST};
  reversed(partition->padded, sizes + 1);
  reversed(partition->cells[index].size, subsizes + 1);
  MPI_Datatype type;
  MPI_Type_create_subarray(AXES + 1, sizes, subsizes, starts, MPI_ORDER_C, point, &type);
  return type;
}

/* Every cell type already has its place in the whole array, hence all displacements are 0. */
static MPI_Datatype all_cells(const struct partition *partition, MPI_Datatype point,
                              MPI_Datatype (*cell_type)(const struct partition *, int,
                                                        MPI_Datatype)) {
  size_t side = (size_t)partition->side;
  MPI_Datatype *types = malloc(side * sizeof *types);
  MPI_Aint *displacements = calloc(side, sizeof *displacements);
  int *counts = malloc(side * sizeof *counts);
  if (types == NULL || displacements == NULL || counts == NULL)
    abort(); /* a few hundred bytes: nothing sensible is left to do */
  for (int index = 0; index < partition->side; index++) {
    types[index] = cell_type(partition, index, point);
    counts[index] = 1;
  }
  MPI_Datatype all;
  MPI_Type_create_struct(partition->side, counts, displacements, types, &all);
  MPI_Type_commit(&all);
  for (int index = 0; index < partition->side; index++)
    MPI_Type_free(&types[index]);
  free(counts);
  free(displacements);
  free(types);
  return all;
}

void layout_make(const struct partition *partition, struct layout *layout) {
  MPI_Type_contiguous(COMPONENTS, MPI_DOUBLE, &layout->point);
  MPI_Type_commit(&layout->point);
  layout->memory = all_cells(partition, layout->point, cell_in_memory);
  layout->file = all_cells(partition, layout->point, cell_in_file);
  layout->count = partition->side;
  layout->cells = malloc((size_t)layout->count * sizeof *layout->cells);
  if (layout->cells == NULL)
    abort(); /* a few hundred bytes: nothing sensible is left to do */
  for (int index = 0; index < layout->count; index++) {
    layout->cells[index] = cell_in_memory(partition, index, layout->point);
    MPI_Type_commit(&layout->cells[index]);
  }
}

void layout_free(struct layout *layout) {
  for (int index = 0; index < layout->count; index++)
    MPI_Type_free(&layout->cells[index]);
  free(layout->cells);
  MPI_Type_free(&layout->file);
  MPI_Type_free(&layout->memory);
  MPI_Type_free(&layout->point);
}
