/* Open MPI or MPICH: which of the two the program has.
 *
 * A job's scripts may use both with one LD_PRELOAD. A process that has the library of the other
 * family executes itself again with the right one, before any code of the program runs. Where the
 * program loads its MPI later, the library passes all calls on. */
#ifndef FOREBAY_MPI_PRELOAD_SWITCH_H
#define FOREBAY_MPI_PRELOAD_SWITCH_H

#include <stdbool.h>

/* True on all ranks but the first, by the variables of the launcher. */
bool preload_is_silent_rank(void);

/* Whether a launcher of MPI programs started this process, or one before it. */
bool preload_is_rank(void);

#endif
