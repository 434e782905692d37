/* What is to be issued, agreed on by all ranks before the first call. */
#ifndef FOREBAY_REPLAY_PLAN_H
#define FOREBAY_REPLAY_PLAN_H

#include "options.h"
#include "reader.h"

/* One MPI_File_open of this rank. */
struct planned_opening {
  uint64_t key; /* of path and members: the same on all ranks of the communicator */
  int members;
  bool is_issued;          /* the traces of all members have it */
  int64_t collectives;     /* in this rank's trace */
  int64_t collectives_max; /* so many of them are in the traces of all members */
};

/* One file of this rank. */
struct planned_path {
  int64_t text;
  int64_t first_unix_ns; /* when its size was looked at first; INT64_MAX: never */
  int64_t bytes_before;  /* its size then, or negative: it was not there */
  bool is_written;
};

struct plan {
  struct planned_opening *openings;
  struct planned_path *paths;
  size_t opening_count, opening_room, path_count, path_room;
  int64_t request_count, call_count, thread_count;
  bool has_threads; /* any rank of the job */
};

/* Collective: reads the trace of this rank, refuses what cannot be issued, and lets rank 0 prepare
 * the files. False, after a message of one rank, if nothing may be issued. */
bool plan_make(struct plan *plan, struct reader *reader, const struct options *options);

void plan_free(struct plan *plan);

/* True if all ranks of the file's communicator make this call together. */
bool is_collective(const struct traced_call *call);

#endif
