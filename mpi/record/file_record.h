/* What is counted for one path and one layer. */
#ifndef FOREBAY_MPI_FILE_RECORD_H
#define FOREBAY_MPI_FILE_RECORD_H

#include "base/text.h"
#include "record/counters.h"
#include "record/io_heatmap.h"
#include "record/size_histogram.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  COLLECTIVE_CALLS_MAX = 4096, /* of one file, whose active writers are counted */
  LIBRARY_NAME_BYTES_MAX = 64,
};

/* What the program opened the file with. */
enum layer { LAYER_MPIIO, LAYER_POSIX, LAYER_STDIO, LAYERS };

struct file {
  pthread_mutex_t lock; /* guards all that follows but path and layer */
  char *path;           /* absolute */
  enum layer layer;
  int bound;             /* atomic: descriptors that belong to it */
  bool has_failed_write; /* atomic: see failed_write.h */
  char *name; /* LAYER_MPIIO: as the program gave it last, without a prefix like "ufs:" */
  struct counters counters;
  struct seconds seconds;
  struct moments moments;          /* clock readings */
  int64_t next_offset[DIRECTIONS]; /* end of the last system call; -1: none yet */
  int64_t rmw_retry_offset;        /* where a short read for a write ended; -1: it was whole */
  int64_t stripe_bytes, stripe_count;
  int64_t alignment_bytes; /* st_blksize; 0: not known */
  int64_t end_bytes; /* atomic: of the file, as far as this process knows; where appending begins */
  int64_t characters[DIRECTIONS]; /* atomic: see single_byte_io.h */
  int64_t collective_writes;
  uint8_t wrote[COLLECTIVE_CALLS_MAX / 8]; /* bit n: this rank wrote in the n-th collective write */
  char opened_by[LIBRARY_NAME_BYTES_MAX];  /* object that opened the descriptor */
  /* Kept by the first rank of the file's communicator only: lines of KEY=VALUE. */
  struct text hints_asked, hints_of_program, hints_in_force;
  bool tells_hints;
  bool wants_lazy;      /* the last open asked for lazy I/O */
  int atomic_handles;   /* open handles in atomic mode */
  bool has_lazy_writes; /* since they were written back */
  bool has_lazy_cache;  /* read or written since the cache was forgotten */
  int lazy_error;       /* of writing back, not yet the result of a call; 0: none */
  struct size_count asked_sizes[DIRECTIONS][SIZES_MAX], system_sizes[DIRECTIONS][SIZES_MAX];
  struct heat asked_heat, system_heat; /* the first of LAYER_MPIIO only */
};

void file_lock(struct file *file);
void file_unlock(struct file *file);

/* By system calls, or calls on a stream. */
bool file_has_moved_data(const struct file *file);

/* There is nothing to report: its opening has moved to another layer. */
bool file_is_empty(const struct file *file);

#endif
