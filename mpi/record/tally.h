/* What is counted for one path and one layer by one process: numbers alone, no pointers, so that it
 * can be in a live file (live_file.h) and be read by another process. A change of its layout is a
 * new LIVE_FORMAT. */
#ifndef FOREBAY_MPI_TALLY_H
#define FOREBAY_MPI_TALLY_H

#include "record/counters.h"
#include "record/io_heatmap.h"
#include "record/size_histogram.h"

#include <stdint.h>

enum {
  COLLECTIVE_CALLS_MAX = 4096, /* of one file, whose active writers are counted */
  LIBRARY_NAME_BYTES_MAX = 64,
};

struct tally {
  uint32_t layer;   /* enum layer */
  uint32_t updates; /* odd: something is being counted */
  struct counters counters;
  struct seconds seconds;
  struct moments moments;          /* clock readings */
  int64_t next_offset[DIRECTIONS]; /* end of the last system call; -1: none yet */
  int64_t rmw_retry_offset;        /* where a short read for a write ended; -1: it was whole */
  int64_t end_bytes[DIRECTIONS];   /* the largest end of a system call */
  int64_t stripe_bytes, stripe_count;
  int64_t alignment_bytes;        /* st_blksize; 0: not known */
  int64_t characters[DIRECTIONS]; /* atomic: see single_byte_io.h */
  int64_t collective_writes;
  uint8_t wrote[COLLECTIVE_CALLS_MAX / 8]; /* bit n: this rank wrote in the n-th collective write */
  char opened_by[LIBRARY_NAME_BYTES_MAX];  /* object that opened the descriptor */
  struct size_count asked_sizes[DIRECTIONS][SIZES_MAX], system_sizes[DIRECTIONS][SIZES_MAX];
  struct heat asked_heat, system_heat; /* the first of LAYER_MPIIO only */
};

#endif
