/* Keeps signal handlers away from what they must not leave by longjmp, as they may leave a hooked
 * open or write: the functions of printf and scanf would be cleaned up, and crash (glibc before
 * 2.37), and the locks of the dynamic loader would stay locked. Two system calls: only for what is
 * rare. */
#ifndef FOREBAY_MPI_SIGNALS_H
#define FOREBAY_MPI_SIGNALS_H

#include <signal.h>

/* All but those of a fault. */
void signals_hold(sigset_t *before);
void signals_release(const sigset_t *before);

/* Runs the statement while this thread's signals wait. */
#define WITHOUT_SIGNALS(statement)                                                                 \
  do {                                                                                             \
    sigset_t before;                                                                               \
    signals_hold(&before);                                                                         \
    statement;                                                                                     \
    signals_release(&before);                                                                      \
  } while (0)

#endif
