/* The files of all ranks, joined on rank 0. */
#ifndef FOREBAY_MPI_GATHER_H
#define FOREBAY_MPI_GATHER_H

#include "files.h"

enum {
  JOINED_FILES_MAX = 4096, /* paths of the whole job; later ones are counted, not reported */
  WRITERS_LISTED_MAX = 256,
  ACTIVE_CLASSES = 4,
};

struct writer {
  int rank;
  bool is_aggregator; /* wrote inside of a collective call */
  int64_t calls, bytes;
};

struct joined {
  char *path;
  int ranks; /* that opened it */
  struct counters counters;
  struct seconds sum, slowest;
  int64_t stripe_bytes, stripe_count; /* 0: not known */
  char opened_by[LIBRARY_NAME_BYTES_MAX];
  struct text hints_asked, hints_of_program, hints_in_force;
  /* Ranks that made at least one such call. */
  int independent_ranks[DIRECTIONS], system_ranks[DIRECTIONS], aggregators[DIRECTIONS];
  int writer_count; /* of those listed */
  struct writer writers[WRITERS_LISTED_MAX];
  int64_t collective_writes;
  uint16_t *active; /* ranks that wrote in the n-th collective write; NULL: none yet */
};

struct job {
  int file_count;
  struct joined *files[JOINED_FILES_MAX];
  int64_t dropped; /* opens that were not observed, and files that found no room here */
};

/* Collective. Only rank 0 gets an answer; elsewhere, and where memory ends, NULL. */
struct job *gather(void);

/* Collective writes by how many of the file's aggregators were active: one; up to half; more; all.
 * Those in which nobody wrote are left out. */
void active_classes(const struct joined *file, int64_t classes[ACTIVE_CLASSES]);

#endif
