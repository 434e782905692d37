/* The one JSON line on stdout. README.md in the folder above says what its fields mean. */
#ifndef HARNESS_REPORT_H
#define HARNESS_REPORT_H

#include "times.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct report {
  MPI_Comm comm;
  const char *variant;
  const char *path;
  char mode;     /* 'w' or 'r' */
  int64_t bytes; /* of data, moved by all ranks together */

  /* of this rank */
  int64_t calls; /* calls that moved data to or from a file, those of --verify not counted */
  struct io_times io;
  double compute_s;
  double verify_s;

  bool verify;        /* whether values were compared */
  int64_t mismatches; /* found by all ranks together */
};

/* Collective: rank 0 prints sums and maxima over all ranks. print_setting adds the fields that only
 * this kernel has, each with a comma before it; start is MPI_Wtime after MPI_Init. False on rank 0,
 * with a message, if stdout takes no more. */
bool report_print(const struct report *report, void (*print_setting)(const void *setting),
                  const void *setting, double start);

#endif
