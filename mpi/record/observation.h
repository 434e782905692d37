/* Whether this process observes its files, and since when. */
#ifndef FOREBAY_MPI_OBSERVATION_H
#define FOREBAY_MPI_OBSERVATION_H

#include <stdbool.h>
#include <sys/types.h>

/* The child of a fork observes nothing: a lock may be held by a thread that the child lacks. A
 * child that calls this observes again. */
void observation_begin(void);

/* This process is a child made by fork that has not begun again. */
static inline bool observation_is_lost(void) {
  extern bool observation_is_of_child; /* inline: every call on an observed descriptor reads it */
  return __atomic_load_n(&observation_is_of_child, __ATOMIC_RELAXED);
}

/* The origin is the moment from which others are counted, as the clock reads it. */
void observation_set_origin(double origin_s);

void observation_start(void);
void files_stop(void);
bool files_are_observed(void);
double files_origin_s(void);

/* The process that called observation_begin. */
pid_t files_process(void);

#endif
