/* On which node each rank is, and who reads whose files. */
#ifndef IO500_PLACEMENT_H
#define IO500_PLACEMENT_H

#include "phase.h"

/* Whether every rank has the directory, at the same place; prints the nodes. The report's own
 * fields are then `nodes`, the host names in the order of their first rank, and `shift`: the
 * distance to a rank on another node, for as many ranks as can be. On one node it is 1. */
bool placement_print(struct benchmark *benchmark);

/* Prints the fields of the phase `placement`. */
void placement_print_fields(void);

#endif
