#include "base/signals.h"

#include <stddef.h>

void signals_block(sigset_t *before) {
  static const int of_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  sigset_t held;
  sigfillset(&held);
  for (size_t i = 0; i < sizeof of_faults / sizeof *of_faults; i++)
    sigdelset(&held, of_faults[i]);
  pthread_sigmask(SIG_BLOCK, &held, before);
}

void signals_restore(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }
