#ifndef FOREBAY_MPI_REPORT_H
#define FOREBAY_MPI_REPORT_H

#include "report/rank_merge.h"

#include <stdbool.h>

/* Collective, before MPI is finalised: rank 0 gathers the records of all ranks, then prints and
 * writes the requested reports. */
void report_make(double wall_s);

/* The members of the JSON (docs/reference/mpi.md) that describe the files, without the braces
 * around them. */
void report_members_json(const struct job *job, double wall_s, struct text *out);

/* One file as Cray's MPI prints it for MPICH_MPIIO_STATS=1, in both directions. */
void report_box(const struct merged_file *file, struct text *out);

#endif
