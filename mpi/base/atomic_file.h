/* Files of this library itself. No hook counts them, and nothing here calls malloc. */
#ifndef FOREBAY_MPI_ATOMIC_FILE_H
#define FOREBAY_MPI_ATOMIC_FILE_H

#include "base/text.h"

#include <sys/types.h>

/* Reads up to `room` bytes; returns how many, or -1. */
ssize_t file_read(const char *path, char *bytes, size_t room);

/* Replaces the content. False, with errno, if that fails. */
bool file_write(const char *path, const char *bytes, size_t length);

/* Writes PATH.new and renames it to the path, so that a reader never finds part of it; writes into
 * a device or a pipe directly. False, with errno, if that fails. */
bool atomic_file_write(const char *path, const struct text *text);

#endif
