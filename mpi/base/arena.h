/* Memory for records, which are never given back. It does not come from malloc: a program may open
 * a file, or exit, in a signal handler that has interrupted malloc. */
#ifndef FOREBAY_MPI_ARENA_H
#define FOREBAY_MPI_ARENA_H

#include <stddef.h>

/* Zeroed, aligned for anything; NULL if there is none. */
void *arena_alloc(size_t bytes);

/* A copy of the string, NULL if there is no memory. */
char *arena_copy(const char *text);

/* In a child made by fork: a thread of the parent may have held the lock. */
void arena_resume_in_child(void);

#endif
