/* The library's locks. A signal handler may interrupt the thread that holds one and open or write a
 * file: hooks ask in_critical_section first, and then do without. Nothing is called in a section
 * that may block, and sections nest. */
#ifndef FOREBAY_MPI_REENTRANCY_H
#define FOREBAY_MPI_REENTRANCY_H

#include <pthread.h>
#include <stdbool.h>

/* Returns in any case, after a second if nobody frees the lock. */
void critical_lock(pthread_mutex_t *lock);
void critical_unlock(pthread_mutex_t *lock);

/* The same without a lock, around the use of what this thread has only one of. */
void critical_section_begin(void);
void critical_section_end(void);

/* This thread is between the two. */
bool in_critical_section(void);

#endif
