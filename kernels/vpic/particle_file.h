/* The HDF5 file. Every function is collective, as harness/attempt.h describes. */
#ifndef VPIC_PARTICLE_FILE_H
#define VPIC_PARTICLE_FILE_H

#include "harness/times.h"
#include "options.h"
#include "particles.h"

#include <hdf5.h>

struct particle_file {
  MPI_Comm comm;
  const char *path;
  int transfer;
  struct io_times *times;
  int64_t calls;   /* of this rank that moved data */
  hid_t id;        /* negative while it is not open */
  bool writing;    /* set by create */
  int64_t end;     /* behind the last byte of data that was written */
  char fault[128]; /* of the first call that failed on this rank, or empty */
};

bool particle_file_create(struct particle_file *file);
bool particle_file_open(struct particle_file *file);
/* A failure ends the program by MPI_Abort, after a message; so does one of sync, and of close after
 * writing. */
void particle_file_write(struct particle_file *file, int step, struct particles *particles);
bool particle_file_read(struct particle_file *file, int step, struct particles *particles);

/* Not timed: whether nothing is missing at the end of the file. To be asked before sync and close,
 * which would make a file too short as long as it should be. */
bool particle_file_is_whole(struct particle_file *file);

void particle_file_sync(struct particle_file *file);
bool particle_file_close(struct particle_file *file);

/* After a failure, of which a message tells: ends the program, with STATUS_FAILED, by MPI_Abort if
 * the file was to be written. HDF5 would write what it still has of a file that takes no more, when
 * it is closed and again when MPI ends, and ranks would wait for each other there for ever. */
void particle_file_give_up(struct particle_file *file);

#endif
