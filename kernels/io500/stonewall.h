/* Operations of all ranks until a time is over, and then until all have done equally many: the
 * wear-out of IOR's option stoneWallingWearOut, and of mdtest's -W. */
#ifndef IO500_STONEWALL_H
#define IO500_STONEWALL_H

#include "phase.h"

#include "harness/attempt.h"

struct stonewall {
  const struct attempt *attempt; /* what one operation is, for messages */
  const char *path;              /* on which it is done */
  /* Does operation `index` of this rank. NULL, or the fault. */
  const char *(*operate)(void *context, int64_t index);
  void *context;
};

/* Collective. True if every operation of every rank succeeded; then all ranks have done
 * benchmark->operations of them. A rank that fails does no further one. */
bool stonewall_run(struct benchmark *benchmark, const struct stonewall *stonewall);

/* The same for operations that may be repeated: only the stonewall ends them, if there is one.
 * Ranks end with different numbers of operations, of which benchmark->operations is the largest. */
bool stonewall_read(struct benchmark *benchmark, const struct stonewall *stonewall);

/* Collective: all ranks begin now, and the time counts from here. */
void wall_start(struct benchmark *benchmark);

/* Collective: all ranks are done. */
void wall_stop(struct benchmark *benchmark);

#endif
