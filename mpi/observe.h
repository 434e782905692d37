/* What a system call on an MPI file's descriptor means. */
#ifndef FOREBAY_MPI_OBSERVE_H
#define FOREBAY_MPI_OBSERVE_H

#include "files.h"

#include <stdbool.h>
#include <sys/types.h>

/* A read or write of asked bytes that began at offset. */
struct transfer {
  enum direction direction;
  off_t offset;
  size_t asked;  /* 0: not known */
  ssize_t moved; /* -1: it failed */
};

void observe_data(struct file *file, struct transfer transfer, double elapsed_s);

enum system_call { LOCK, SEEK, SYNC, TRUNCATION };

void observe_other(struct file *file, enum system_call what, double elapsed_s);

/* A descriptor appeared during a call to MPI: binds it to the file of that call if it is that
 * file's. */
void observe_open(const char *path, int descriptor, const void *caller);

void observe_close(int descriptor);

#endif
