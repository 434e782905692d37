/* The MPI types of one dump of one rank, in memory and in the file. */
#ifndef BTIO_LAYOUT_H
#define BTIO_LAYOUT_H

#include "partition.h"

struct layout {
  MPI_Datatype point;  /* 5 contiguous doubles: the unit of the file and of its offsets */
  MPI_Datatype memory; /* the cells of this rank in a padded array, ghosts left out */
  MPI_Datatype file;   /* the same cells in a dump; its extent is one whole dump */
  MPI_Datatype *cells; /* each of those cells alone in the padded array */
  int count;           /* of cells */
};

void layout_make(const struct partition *partition, struct layout *layout);
void layout_free(struct layout *layout);

#endif
