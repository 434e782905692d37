/* Whether calls are traced, for those below the trace that only need to know so. */
#ifndef FOREBAY_MPI_TRACE_STATE_H
#define FOREBAY_MPI_TRACE_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* True between trace_start and trace_stop; constant in between, so it is read without a lock. */
extern bool trace_is_on;

/* Calls of the program that the trace has seen the end of; written with the trace's lock held. */
extern int64_t trace_calls_ended;

/* How many calls have ended so far; kept in a call from its begin to its end. */
static inline int64_t trace_call_count(void) {
  return trace_is_on ? __atomic_load_n(&trace_calls_ended, __ATOMIC_RELAXED) : 0;
}

#endif
