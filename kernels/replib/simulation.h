/* The simulated report: values, writing in two styles, reading back. */
#ifndef REPLIB_SIMULATION_H
#define REPLIB_SIMULATION_H

#include "harness/report.h"
#include "report_file.h"

struct simulation {
  MPI_Comm comm;
  struct options options;
  const struct backend *backend;
  struct distribution_of_rank distribution;
  float *buffers[2]; /* one is filled while the other one was written */
  struct report report;
};

/* Collective. False if memory is short on any rank. */
bool simulation_allocate(struct simulation *simulation);
void simulation_free(struct simulation *simulation);

/* Collective. False, with the reason printed, if an I/O call failed or the file has a wrong size;
 * wrong values are printed and counted, but do not end the run. */
bool simulation_run(struct simulation *simulation);

int64_t simulation_bytes(const struct simulation *simulation);

#endif
