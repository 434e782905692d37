/* Bytes that the hooks see on descriptors of no record: pipes, terminals, files of the system. They
 * are the difference between what the kernel counts for the job's processes and what is recorded;
 * what is in neither went around the hooks.
 *
 * `forebay` gets the kernel's count of its descendants. The sums of these are in a page of the
 * record. A process maps it when it has moved enough, or at its end. Others, on other hosts or
 * started by a daemon of the scheduler, report their own sums with the kernel's count of
 * themselves. Nothing here makes a system call for each call. */
#ifndef FOREBAY_MPI_ELSEWHERE_H
#define FOREBAY_MPI_ELSEWHERE_H

#include "include/trace_format.h"
#include "record/program_info.h"

#include <stdbool.h>
#include <stdint.h>

/* The directory of the record, absolute and not copied. Before this nothing is counted. */
void unrecorded_begin(const char *directory);

static inline bool unrecorded_is_counted(void) {
  extern bool unrecorded_wanted;
  return __atomic_load_n(&unrecorded_wanted, __ATOMIC_RELAXED);
}

void unrecorded_note(enum direction direction, int64_t bytes);

/* Bytes of -1 are those of a call that failed. */
static inline void unrecorded_add(enum direction direction, int64_t bytes) {
  if (bytes > 0 && unrecorded_is_counted())
    unrecorded_note(direction, bytes);
}

/* Of bytes in a recorded file that the kernel does not count. */
static inline void unrecorded_subtract(enum direction direction, int64_t bytes) {
  if (bytes > 0 && unrecorded_is_counted())
    unrecorded_note(direction, -bytes);
}

enum count_source { COUNT_UNKNOWN, COUNT_OF_FOREBAY, COUNT_OF_PROCESS };

/* Of this process up to now; all but the source are for COUNT_OF_PROCESS. */
struct process_count {
  enum count_source source;
  char host[HOST_BYTES_MAX];
  int64_t counted[DIRECTIONS]; /* by the kernel */
  int64_t elsewhere[DIRECTIONS];
};
struct process_count unrecorded_count(void);

/* The process ends. */
void unrecorded_end(void);

#endif
