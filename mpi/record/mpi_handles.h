/* The open files of MPI-IO, by handle. */
#ifndef FOREBAY_MPI_HANDLES_H
#define FOREBAY_MPI_HANDLES_H

#include "record/file_record.h"

#include <mpi.h>

enum { HANDLES_MAX = 2048 }; /* open at once on one rank; a power of two */

/* An open MPI file. */
struct mpi_handle {
  MPI_File handle;
  struct file *file;
  bool records_hints; /* this rank is the first of its communicator */
  bool is_atomic;
};

void handles_add(MPI_File handle, struct file *file, bool records_hints);
struct mpi_handle handles_find(MPI_File handle);
void handles_remove(MPI_File handle);

/* Returns what it was before. */
bool handles_set_atomic(MPI_File handle, bool is_atomic);

/* Opens that found no room here. */
int64_t handles_dropped(void);

/* In a child made by fork: what the parent has opened is not the child's. */
void handles_forget(void);

#endif
