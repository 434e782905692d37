/* The trace of this rank on disk: a bounded buffer, a bounded file.
 *
 * The file is opened for each block and closed again, so that a program that closes or replaces
 * descriptors it does not know cannot meet ours. The system calls are made without libc: no hook
 * counts, traces or delays them. The caller holds the lock of the trace. */
#ifndef FOREBAY_MPI_TRACE_FILE_H
#define FOREBAY_MPI_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TRACE_BUFFER_BYTES = 64 << 10,
  TRACE_TRAILER_BYTES_MAX = 128,       /* kept free below the limit of the file */
  TRACE_BYTES_MIN = 4096,              /* the least limit: header and trailer fit */
  TRACE_FLUSH_TICKS = 1000 * 1000 * 10 /* what waits in the buffer is at most so old (1 s) */
};

/* Makes the file, empty. False, with errno, if it cannot. Takes the path over. */
bool trace_file_make(char *path, int64_t bytes_max);

/* Adds one whole record. False if the trace has stopped. now is in ticks. */
bool trace_file_add(const uint8_t *record, size_t length, int64_t now);

/* Writes what waits in the buffer. */
void trace_file_flush(void);

/* Writes the last record, for which room was kept, also after the trace has stopped. */
void trace_file_end(const uint8_t *trailer, size_t length);

/* Why the trace has stopped: 0 it has not, -1 the limit, else errno of the write that failed. */
int trace_file_stopped(void);

#endif
