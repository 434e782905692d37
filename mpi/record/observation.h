/* Whether this process observes its files, and since when. */
#ifndef FOREBAY_MPI_OBSERVATION_H
#define FOREBAY_MPI_OBSERVATION_H

#include <stdbool.h>
#include <sys/types.h>

/* `resume` is called in a child made by fork, before its first call that is counted; a lock may be
 * held by a thread that the child lacks. If it returns false the child observes nothing. */
void observation_begin(bool (*resume)(void));

/* This process is a child made by fork that has not counted anything yet. */
static inline bool observation_is_lost(void) {
  extern int observation_in_child; /* inline: every call on an observed descriptor reads it */
  return __atomic_load_n(&observation_in_child, __ATOMIC_RELAXED) != 0;
}

/* In such a child: true if it observes from now on. */
bool observation_resume(void);

/* The origin is the moment from which others are counted, as the clock reads it and in seconds
 * since 1970. */
void observation_set_origin(double origin_s, double started_unix_s);

void observation_start(void);
void files_stop(void);
bool files_are_observed(void);
double files_origin_s(void);
double files_started_unix_s(void);

/* The process that counts. */
pid_t files_process(void);

#endif
