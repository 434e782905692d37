/* wrfbdy: values on the four sides of the grid, for six fields and their tendencies. */
#ifndef WRF_BOUNDARY_H
#define WRF_BOUNDARY_H

#include "dataset.h"
#include "harness/mismatches.h"

enum { BOUNDARY_WIDTH = 5, BOUNDARY_VARIABLES = 48 };

struct boundary {
  const struct options *options;
  struct domain *domain;
  int records;
};

/* The index of a value is ((record * 48 + variable) * 5 + row) * levels * side + point, where
 * levels and side are those of the largest variable. */
bool boundary_write(const struct boundary *boundary, struct dataset *file);

/* Reads the pieces of one record along this rank's patch, by one collective call for each
 * variable, row and level, from a file that dataset_open has opened. */
bool boundary_read(const struct boundary *boundary, struct dataset *file, int record,
                   struct mismatches *wrong);

/* "U_BXS, record 0, row 4, level 2, point 7" */
enum { PLACE_BYTES_MAX = 160 };
void boundary_place(const struct boundary *boundary, int64_t index, char place[PLACE_BYTES_MAX]);

#endif
