#define _GNU_SOURCE
#include "base/reentrancy.h"

#include <time.h>
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define IS_ALONE (__libc_single_threaded != 0)
#else
#define IS_ALONE 0
#endif

static __thread volatile int depth __attribute__((tls_model("initial-exec")));

void critical_section_begin(void) { depth++; }

void critical_section_end(void) { depth--; }

/* A lock is held for less than a microsecond. One that is held for so long is lost: a signal
 * handler has left by longjmp what it interrupted. Then we go on as its holder, and free it for
 * others; were it not lost after all, two threads would count at once, and counts go astray. */
enum { LOST_AFTER_S = 1 };

/* The only thread needs no lock: what a signal handler may do, the section tells. No thread begins
 * in a section. */
void critical_lock(pthread_mutex_t *lock) {
  critical_section_begin();
  if (IS_ALONE || pthread_mutex_trylock(lock) == 0)
    return;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LOST_AFTER_S;
  pthread_mutex_timedlock(lock, &until);
}

void critical_unlock(pthread_mutex_t *lock) {
  if (!IS_ALONE)
    pthread_mutex_unlock(lock);
  critical_section_end();
}

bool in_critical_section(void) { return depth > 0; }
