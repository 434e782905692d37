/* Open MPI or MPICH: which of the two the program has.
 *
 * A job's scripts may use both, and one LD_PRELOAD is set for all of them. So a process that finds
 * itself with the library of the other family is started anew with its sibling, before anything of
 * the program has run. Where the program loads its MPI only later, nothing can be exchanged any
 * more, and the library lets all calls through untouched. */
#ifndef FOREBAY_MPI_PRELOAD_SWITCH_H
#define FOREBAY_MPI_PRELOAD_SWITCH_H

#include <stdbool.h>

/* Whether the environment says that this process is not the one of several that speaks for all. */
bool preload_is_silent_rank(void);

#endif
