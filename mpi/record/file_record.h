/* What is counted for one path and one layer. */
#ifndef FOREBAY_MPI_FILE_RECORD_H
#define FOREBAY_MPI_FILE_RECORD_H

#include "base/text.h"
#include "record/tally.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What the program opened the file with. */
enum layer { LAYER_MPIIO, LAYER_POSIX, LAYER_STDIO, LAYERS };

/* The path of what stands for all files without a record of their own: those beyond the limit, and
 * those that the program names but never opens. */
#define OTHER_FILES "[other files]"

struct file {
  pthread_mutex_t lock; /* guards all that follows but path and layer */
  char *path;           /* absolute */
  enum layer layer;
  bool is_joint;         /* stands for many files: see OTHER_FILES */
  struct tally *tally;   /* moves when the process gets a live file */
  int bound;             /* atomic: descriptors that belong to it */
  bool has_failed_write; /* atomic: see failed_write.h */
  char *name;        /* LAYER_MPIIO: as the program gave it last, without a prefix like "ufs:" */
  int64_t end_bytes; /* atomic: of the file, as far as this process knows; where appending begins */
  /* Kept by the first rank of the file's communicator only: lines of KEY=VALUE. */
  struct text hints_asked, hints_of_program, hints_in_force;
  bool records_hints;
  bool wants_lazy;      /* the last open asked for lazy I/O */
  int atomic_handles;   /* open handles in atomic mode */
  bool has_lazy_writes; /* since they were written back */
  bool has_lazy_cache;  /* read or written since the cache was forgotten */
  int lazy_error;       /* of writing back, not yet the result of a call; 0: none */
};

/* One in which nothing is counted yet. */
struct tally tally_of_layer(enum layer layer);

void file_lock(struct file *file);
void file_unlock(struct file *file);

/* By system calls, or calls on a stream. */
bool file_has_moved_data(const struct file *file);

/* There is nothing to report: its opening has moved to another layer, or the program was started
 * with it and looked at it at most. */
bool file_is_empty(const struct file *file);

#endif
