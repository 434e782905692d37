/* The run: which files are read and written when. */
#ifndef WRF_MODEL_H
#define WRF_MODEL_H

#include "domain.h"
#include "harness/report.h"

struct model {
  struct options options;
  struct domain domain;
  struct report report;
  int64_t bytes; /* of this rank */
  int files;     /* read and written, those of --verify not counted */
};

/* Collective. False, with the reason printed, if an I/O call failed or a file has a wrong size;
 * wrong values are printed and counted, but do not end the run. */
bool model_run(struct model *model);

#endif
