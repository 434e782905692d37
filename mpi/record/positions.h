/* The position of each open file description, followed from the calls that move it, without a
 * system call. Descriptors made by dup share one; of a stream it is the place that the program
 * sees, behind which libc's buffer may have read on.
 *
 * Nothing here locks or allocates: signal handlers come here too. Threads that use one descriptor
 * at the same time can at worst have their calls recorded in another order. */
#ifndef FOREBAY_MPI_POSITIONS_H
#define FOREBAY_MPI_POSITIONS_H

#include "record/counters.h"

#include <stdbool.h>
#include <stdint.h>

enum { POSITION_UNKNOWN = -1 };

enum { DESCRIPTORS_MAX = 65536 }; /* higher ones are not observed */

/* The descriptor was opened: its position is 0. */
void position_begin(int descriptor, bool appends);

/* `to` is a duplicate of `from`. */
void position_share(int from, int to);

void position_end(int descriptor);

/* The offset may be POSITION_UNKNOWN. */
void position_set(int descriptor, int64_t offset);

/* From now on it writes at the end of the file, or does so no more. */
void position_set_appends(int descriptor, bool appends);

/* A character was pushed back. */
void position_step_back(int descriptor);

/* Where the call began that moved so many bytes (negative: it failed) by the descriptor's own
 * position, or POSITION_UNKNOWN. A call that appends begins at *end_bytes, the file's end as far as
 * this process knows it, and moves that on. */
int64_t position_advance(int descriptor, enum direction direction, int64_t moved_bytes,
                         int64_t *end_bytes);

#endif
