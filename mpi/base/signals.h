/* Lets signals wait where a handler must not leave by longjmp, as it may leave a hooked open or
 * write. The functions of printf and scanf would be cleaned up then, and crash (glibc before 2.37).
 * The locks of the dynamic loader would stay locked. Two system calls: only for what is rare. */
#ifndef FOREBAY_MPI_SIGNALS_H
#define FOREBAY_MPI_SIGNALS_H

#include <signal.h>

/* All but those of a fault. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/* Runs the statement while this thread's signals wait. */
#define WITHOUT_SIGNALS(statement)                                                                 \
  do {                                                                                             \
    sigset_t before;                                                                               \
    signals_block(&before);                                                                        \
    statement;                                                                                     \
    signals_restore(&before);                                                                      \
  } while (0)

#endif
