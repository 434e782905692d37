/* The live file: the tallies of this process in memory that is a file in the job's record, so that
 * they outlive the process. A process gets one when it has done some I/O; then its tallies move
 * there. Nothing here makes a system call for each call or file: the file grows by chunks. */
#ifndef FOREBAY_MPI_LIVE_FILE_H
#define FOREBAY_MPI_LIVE_FILE_H

#include "record/live_format.h"

#include <stdbool.h>

/* The directory of the record, absolute and not copied. Before this there is no live file. */
void live_begin(const char *directory);

/* Makes the file if this process is to have one and has none. False: it has none, or has one
 * already. The program's name and arguments are taken from /proc. */
bool live_make(void);

/* A copy of the tally in the live file; NULL without one, or where it cannot grow. */
struct tally *live_add(const struct tally *tally, const char *path);

/* Nothing more is to be done for this process. One load, for every call on an observed file. */
static inline bool live_is_settled(void) {
  extern bool live_settled;
  return __atomic_load_n(&live_settled, __ATOMIC_RELAXED);
}

/* The process is this rank of an MPI program. */
void live_set_rank(const char *step_id, int rank, int ranks);

/* Since when it counts. */
void live_set_origin(double origin_s, double started_unix_s);
void live_set_lost(int64_t dropped, int64_t joined);

/* The report is written: removes the file. */
void live_end(void);

/* In a child made by fork: the parent's file is not its own, but stays in its memory. */
void live_forget(void);

#endif
