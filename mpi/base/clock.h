#ifndef FOREBAY_MPI_CLOCK_H
#define FOREBAY_MPI_CLOCK_H

#include <time.h>

/* Seconds on a clock that is never set; no system call on the usual machines. */
static inline double clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Microseconds since 1970. */
static inline long long unix_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
