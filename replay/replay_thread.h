/* One thread of the trace being issued, and what all threads of the rank share. */
#ifndef FOREBAY_REPLAY_THREAD_H
#define FOREBAY_REPLAY_THREAD_H

#include "buffers.h"
#include "issue.h"

#include <pthread.h>
#include <stdio.h>

struct handle {
  MPI_File file;
  bool is_open;
  int64_t collectives; /* met so far */
  void *split_buffer;  /* of the split call under way */
};

/* What is open of one path without MPI-IO, the last one last. */
enum { OPENINGS_MAX = 64 };
struct opened {
  int descriptor, flags;
  FILE *stream; /* above the descriptor, or NULL */
};
struct openings {
  int count;
  struct opened open[OPENINGS_MAX];
};

struct rank {
  const struct plan *plan;
  const struct options *options;
  struct handle *handles;   /* by number of the opening */
  MPI_Request *requests;    /* by number */
  struct openings *by_path; /* by number of the path's text */
  size_t path_count;
  /* The order of calls of several threads; all guarded by the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint8_t *is_done; /* by index of the call */
  int64_t done;     /* all calls below this index are done */
};

struct replay_thread {
  struct rank *rank;
  struct reader reader;
  struct types types;
  struct buffers buffers;
  int64_t thread;
  struct outcome outcome;
};

/* MPI_SUCCESS, an error of MPI, or one of these: the call cannot be issued, it is skipped. */
enum { NOT_ISSUED = -1, SKIPPED = -2 };

int issue_data(struct replay_thread *self, const struct traced_call *call);
int issue_file_call(struct replay_thread *self, const struct traced_call *call);
int issue_system_call(struct replay_thread *self, const struct traced_call *call);

#endif
