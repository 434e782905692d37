#ifndef FOREBAY_MPI_ATOMIC_FILE_H
#define FOREBAY_MPI_ATOMIC_FILE_H

#include "base/text.h"

/* Writes PATH.new and renames it to the path, so that a reader never finds part of it; writes into
 * a device or a pipe directly. False, with errno, if that fails. */
bool atomic_file_write(const char *path, const struct text *text);

#endif
