// Preload for the grids: a rank that waits sleeps instead of spinning.
//
// Open MPI's ranks call sched_yield between looks at their queues when there are more of them than
// processors. With nine ranks on two processors those that wait keep the one that works from its
// turn, and that is what varies most.

#include <sched.h>
#include <time.h>

enum { IDLE_NS = 50000 };

int sched_yield(void) {
  const struct timespec idle = {.tv_nsec = IDLE_NS};
  return nanosleep(&idle, NULL);
}
