/* The one JSON line on stdout. */
#ifndef BTIO_REPORT_H
#define BTIO_REPORT_H

#include "benchmark.h"

/* Collective: rank 0 prints the maxima over all ranks. total_s is this rank's time from MPI_Init
 * on. False on rank 0 if stdout takes no more. */
bool report_print(const struct benchmark *benchmark, double total_s);

#endif
