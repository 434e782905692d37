/* The one file that all ranks share, and the time spent in it.
 *
 * Every function is collective and gives all ranks the same answer: after a call that failed on any
 * rank, the lowest failing rank has printed what failed and all ranks return false, so that none of
 * them waits in the next collective call. The exchange of that answer is not counted as I/O. */
#ifndef BTIO_SHARED_FILE_H
#define BTIO_SHARED_FILE_H

#include "layout.h"

struct io_times {
  double open_s; /* MPI_File_open and MPI_File_set_view */
  double write_s;
  double read_s;
  double sync_s;
  double close_s;
};

struct shared_file {
  MPI_Comm comm;
  const char *path;
  const struct partition *partition;
  const struct layout *layout;
  struct io_times *times;
  MPI_File handle;
};

/* A new file: one that is there already is deleted first (not timed), because striping and other
 * hints act only on creation, and a longer old file would keep its tail. */
bool shared_file_create(struct shared_file *file);

/* An existing file, for reading. */
bool shared_file_open(struct shared_file *file);

bool shared_file_write(struct shared_file *file, int dump, const double *values);
bool shared_file_read(struct shared_file *file, int dump, double *values);
bool shared_file_sync(struct shared_file *file);

/* Not timed. Some MPI libraries (Open MPI 4.1's ompio) report success for a collective write that
 * met a full disk; the missing tail gives it away. */
bool shared_file_has_size(struct shared_file *file, int64_t bytes);

bool shared_file_close(struct shared_file *file);

/* Closes after a failure, without a further message. */
void shared_file_give_up(struct shared_file *file);

#endif
