/* The state of the model in one file: wrfinput, wrfout and wrfrst have the same form. */
#ifndef WRF_STATE_H
#define WRF_STATE_H

#include "dataset.h"
#include "harness/mismatches.h"

struct state {
  const struct options *options;
  struct domain *domain;
  const char *date;
  int64_t number; /* of the file among all of a run: it is in the values */
};

/* Writes a new file, variable after variable, or reads one. Making the values adds to *fill_s,
 * comparing them (wrong != NULL) to *compare_s. The index of a value is
 * (number * variables + variable) * points of the grid + point in the variable. */
bool state_write(const struct state *state, struct dataset *file, double *fill_s);
bool state_read(const struct state *state, struct dataset *file, struct mismatches *wrong,
                double *compare_s);

/* "VAR3D_0006, level 2, south_north 3, west_east 4", all from 0 */
void state_place(const struct state *state, int64_t index, char *place, size_t bytes);

#endif
