/* The files that this rank opened by MPI, and which handles and descriptors belong to them.
 *
 * One record for each path, however often it is opened; records are never freed, so a pointer to
 * one stays good. A call on the handle or descriptor of no record costs one look-up. */
#ifndef FOREBAY_MPI_FILES_H
#define FOREBAY_MPI_FILES_H

#include "counters.h"
#include "text.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  FILES_MAX = 1024,            /* paths on one rank; later ones are counted, not observed */
  HANDLES_MAX = 2048,          /* open at once on one rank; a power of two */
  DESCRIPTORS_MAX = 65536,     /* higher ones are not observed */
  COLLECTIVE_CALLS_MAX = 4096, /* of one file, for which the active writers are told apart */
  LIBRARY_NAME_BYTES_MAX = 64,
};

struct file {
  pthread_mutex_t lock; /* guards all that follows but path */
  char *path;           /* absolute */
  char *name;           /* as the program gave it last, without a prefix like "ufs:" */
  struct counters counters;
  struct seconds seconds;
  int64_t next_offset[DIRECTIONS]; /* end of the last system call; -1: none yet */
  int64_t rmw_retry_offset;        /* where a short read for a write ended; -1: it was whole */
  int64_t stripe_bytes, stripe_count;
  int64_t collective_writes;
  uint8_t wrote[COLLECTIVE_CALLS_MAX / 8]; /* bit n: this rank wrote in the n-th collective write */
  char opened_by[LIBRARY_NAME_BYTES_MAX];  /* object that opened the descriptor */
  /* Kept by the first rank of the file's communicator only: lines of KEY=VALUE. */
  struct text hints_asked, hints_of_program, hints_in_force;
  bool tells_hints;
};

/* An open MPI file. */
struct opened {
  MPI_File handle;
  struct file *file;
  bool tells_hints; /* this rank is the first of its communicator */
};

/* The lock of a file. A signal handler may interrupt the thread that holds it and open or write a
 * file: the hooks below MPI-IO ask files_are_locked_here first, and then do without. */
void file_lock(struct file *file);
void file_unlock(struct file *file);
bool files_are_locked_here(void);

/* The record for the name that is about to be opened, made if needed; NULL beyond FILES_MAX. */
struct file *files_for_name(const char *name);

/* The n-th record, NULL behind the last. */
struct file *files_at(int index);

/* Opens that found no room, in files or in handles. */
int64_t files_dropped(void);

void handles_add(MPI_File handle, struct file *file, bool tells_hints);
struct opened handles_find(MPI_File handle);
void handles_remove(MPI_File handle);

/* NULL for a descriptor that belongs to no record. */
struct file *descriptors_find(int descriptor);
void descriptors_set(int descriptor, struct file *file);

/* Once, before anything is observed. In a child made by fork nothing is observed any more: a lock
 * may be held by a thread that the child lacks. */
void files_start(void);

/* The process that called files_start. */
pid_t files_process(void);

#endif
