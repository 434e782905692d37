/* What the file system says of a file that was written. */
#ifndef HARNESS_STORED_FILE_H
#define HARNESS_STORED_FILE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Collective: whether the file, as rank 0 sees it, has this size. What an MPI library that met a
 * full disk and said nothing leaves behind is shorter. Not timed. */
bool stored_file_check_size(MPI_Comm comm, const char *path, int64_t bytes);

/* The same, and whether all of it was written: a piece that met a full disk leaves a hole, if
 * another one follows it. File systems that do not report holes are taken to have none. */
bool stored_file_check_whole(MPI_Comm comm, const char *path, int64_t bytes);

#endif
