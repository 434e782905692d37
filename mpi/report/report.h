#ifndef FOREBAY_MPI_REPORT_H
#define FOREBAY_MPI_REPORT_H

#include "report/rank_merge.h"

#include <stdbool.h>

/* Collective, before MPI is finalised: gathers, and rank 0 prints and writes what was asked for. */
void report_make(double wall_s);

/* The job as JSON; docs/mpi.md has the fields. */
void report_json(const struct job *job, double wall_s, struct text *out);

/* Of that JSON, what tells of the files: members of an object, without the braces around them. */
void report_members_json(const struct job *job, double wall_s, struct text *out);

/* One file as Cray's MPI prints it for MPICH_MPIIO_STATS=1, in both directions. */
void report_box(const struct merged_file *file, struct text *out);

#endif
