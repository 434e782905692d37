/* What a hook has seen of one call: data that moved, or a descriptor that appeared. */
#ifndef FOREBAY_MPI_IO_EVENT_H
#define FOREBAY_MPI_IO_EVENT_H

#include "record/file_record.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A read or write of `asked` bytes at an offset; negative: not known, and taken to continue where
 * the one before ended. */
struct transfer {
  enum direction direction;
  off_t offset;
  size_t asked;  /* 0: not known */
  ssize_t moved; /* -1: it failed */
  double start_s;
};

struct opening {
  enum layer layer; /* LAYER_POSIX or LAYER_STDIO, if it is not MPI-IO's */
  int directory;    /* from which the path is seen: a descriptor or AT_FDCWD */
  const char *path;
  int descriptor; /* negative: it failed */
  const void *caller;
  double start_s;
  int flags; /* of open, or what they would be */
  mode_t permissions;
  int64_t bytes_before; /* of trace_size_before_open */
};

#endif
