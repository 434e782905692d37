/* The files that this rank opened, and which handles and descriptors belong to them.
 *
 * One record for each path and layer, however often it is opened; records are never freed, so a
 * pointer to one stays good. A call on the handle or descriptor of no record costs one look-up. */
#ifndef FOREBAY_MPI_FILES_H
#define FOREBAY_MPI_FILES_H

#include "base/text.h"
#include "record/counters.h"
#include "record/heat.h"
#include "record/sizes.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  FILES_MAX = 1024,            /* paths opened by MPI-IO on one rank, and as many opened without;
                                  later ones are counted, not observed */
  HANDLES_MAX = 2048,          /* open at once on one rank; a power of two */
  DESCRIPTORS_MAX = 65536,     /* higher ones are not observed */
  COLLECTIVE_CALLS_MAX = 4096, /* of one file, for which the active writers are told apart */
  LIBRARY_NAME_BYTES_MAX = 64,
};

/* What the program opened the file with. */
enum layer { LAYER_MPIIO, LAYER_POSIX, LAYER_STDIO, LAYERS };

struct file {
  pthread_mutex_t lock; /* guards all that follows but path and layer */
  char *path;           /* absolute */
  enum layer layer;
  int bound;  /* atomic: descriptors that belong to it */
  char *name; /* LAYER_MPIIO: as the program gave it last, without a prefix like "ufs:" */
  struct counters counters;
  struct seconds seconds;
  struct moments moments;          /* clock readings */
  int64_t next_offset[DIRECTIONS]; /* end of the last system call; -1: none yet */
  int64_t rmw_retry_offset;        /* where a short read for a write ended; -1: it was whole */
  int64_t stripe_bytes, stripe_count;
  int64_t alignment_bytes; /* st_blksize; 0: not known */
  int64_t end_bytes; /* atomic: of the file, as far as this process knows; where appending begins */
  int64_t characters[DIRECTIONS]; /* atomic: see characters.h */
  int64_t collective_writes;
  uint8_t wrote[COLLECTIVE_CALLS_MAX / 8]; /* bit n: this rank wrote in the n-th collective write */
  char opened_by[LIBRARY_NAME_BYTES_MAX];  /* object that opened the descriptor */
  /* Kept by the first rank of the file's communicator only: lines of KEY=VALUE. */
  struct text hints_asked, hints_of_program, hints_in_force;
  bool tells_hints;
  struct size_count asked_sizes[DIRECTIONS][SIZES_MAX], system_sizes[DIRECTIONS][SIZES_MAX];
  struct heat asked_heat, system_heat; /* the first of LAYER_MPIIO only */
};

/* An open MPI file. */
struct opened {
  MPI_File handle;
  struct file *file;
  bool tells_hints; /* this rank is the first of its communicator */
};

void file_lock(struct file *file);
void file_unlock(struct file *file);

/* This thread holds a lock of the library: see section.h. */
bool files_are_locked_here(void);

/* The record for the name that MPI-IO is about to open, made if needed; NULL beyond FILES_MAX. */
struct file *files_for_name(const char *name);

/* The record for an absolute path that was opened without MPI-IO, made if needed. */
struct file *files_for_path(const char *path, enum layer layer);

/* The same for an open that failed. Programs look for files in many places: such records do not
 * take the room of others, and NULL is no loss. */
struct file *files_for_failure(const char *path, enum layer layer);

/* A record that is there, or NULL. */
struct file *files_known(const char *path, enum layer layer);

/* By system calls, or calls on a stream. */
bool file_has_moved_data(const struct file *file);

/* Nothing is to be told of it: its opening has moved to another layer. */
bool file_is_empty(const struct file *file);

/* The n-th record, NULL behind the last. */
struct file *files_at(int index);

/* Opens that found no room, in files, in handles or in descriptors. */
int64_t files_dropped(void);
void files_note_dropped(void);

void handles_add(MPI_File handle, struct file *file, bool tells_hints);
struct opened handles_find(MPI_File handle);
void handles_remove(MPI_File handle);

/* NULL for a descriptor that belongs to no record. */
struct file *descriptors_find(int descriptor);

/* Returns whose it was. With NULL its position is forgotten too. */
struct file *descriptors_set(int descriptor, struct file *file);

/* No descriptor above it belongs to a record. */
int descriptors_highest(void);

/* Once, before anything is observed. In a child made by fork nothing is observed any more: a lock
 * may be held by a thread that the child lacks. A child that calls this begins anew. */
void files_start(void);

/* Observes from now on. The origin is the moment from which others are counted, as the clock reads
 * it; to call this again moves it. */
void files_observe(double origin_s);
void files_stop(void);
bool files_are_observed(void);
double files_origin_s(void);

/* The process that called files_start. */
pid_t files_process(void);

#endif
