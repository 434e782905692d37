/* One answer for all ranks.
 *
 * Every function is collective. After an attempt that failed on any rank, the lowest failing rank
 * has printed what failed on what, and all ranks return false. So no rank waits in the next
 * collective call. The exchange of that answer is never counted as I/O. */
#ifndef HARNESS_ATTEMPT_H
#define HARNESS_ATTEMPT_H

#include <mpi.h>
#include <stdbool.h>

/* What is tried, and what to do if it fails ("" or "\nhint: ..."). */
struct attempt {
  const char *name;
  const char *hint;
};

extern const char hint_out_of_space[];
extern const char hint_no_place[];

/* fault is NULL on a rank where the attempt succeeded. */
bool attempt_agreed(MPI_Comm comm, const char *path, const struct attempt *attempt,
                    const char *fault);

/* code: what an MPI call returned. */
bool attempt_succeeded(MPI_Comm comm, const char *path, const struct attempt *attempt, int code);

/* False, with a message, if any rank got no memory. what: "the cells of a rank"; hint: what to do
 * about it. */
bool attempt_memory(MPI_Comm comm, bool got, const char *what, const char *hint);

#endif
