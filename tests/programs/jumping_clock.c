/* A wall clock that jumps ten years ahead and back at each look, for one program: LD_PRELOAD it.
   With CLOCK_JUMPS_WHEN it jumps once, by CLOCK_JUMPS_BY_S, when there is a file of that name.
   Clocks that count from the start of the machine stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define TEN_YEARS_S (10L * 365 * 24 * 3600)

static long jump(void) {
  static atomic_uint looks;
  const char *when = getenv("CLOCK_JUMPS_WHEN"), *by_s = getenv("CLOCK_JUMPS_BY_S");
  if (when && by_s)
    return access(when, F_OK) == 0 ? atol(by_s) : 0;
  return atomic_fetch_add(&looks, 1) % 2 ? -TEN_YEARS_S : TEN_YEARS_S;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int done = next(clock, now);
  if (done == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += jump();
  return done;
}

int gettimeofday(struct timeval *now, void *zone) {
  int (*next)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
  int done = next(now, zone);
  if (done == 0)
    now->tv_sec += jump();
  return done;
}

time_t time(time_t *out) {
  time_t (*next)(time_t *) = dlsym(RTLD_NEXT, "time");
  time_t now = next(NULL) + jump();
  if (out)
    *out = now;
  return now;
}
