/* Inside of the trace: its lock, and how a record is put together. */
#ifndef FOREBAY_MPI_TRACE_RECORD_H
#define FOREBAY_MPI_TRACE_RECORD_H

#include "trace/trace.h"

#include <string.h>

/* False in a signal handler that has interrupted the trace itself: its calls count as lost. */
bool trace_enter(void);
void trace_leave(void);

/* Counts a call that cannot be recorded. */
void trace_count_lost(void);
void trace_count_lost_system(void);

struct trace_losses {
  int64_t calls, system_calls; /* of the program; below them */
};
struct trace_losses trace_losses(void);

/* Ticks count from this moment on. */
void trace_begin_clock(double now_s);
int64_t trace_ticks(double s);

enum { TRACE_RECORD_BYTES_MAX = 160 }; /* all but definitions and completions */

struct trace_record {
  uint8_t bytes[TRACE_RECORD_BYTES_MAX];
  size_t length;
};

static inline void trace_add(struct trace_record *record, uint64_t value) {
  record->length += trace_put(record->bytes + record->length, value);
}

static inline void trace_add_signed(struct trace_record *record, int64_t value) {
  trace_add(record, trace_fold(value));
}

/* The start of a record: what all calls have. The lock is held. */
struct trace_head {
  int tag, flags, code;
  int64_t overlap; /* calls of other threads that ended while this one was under way */
  double start_s, end_s;
};

void trace_add_head(struct trace_record *record, struct trace_head head);

/* Adds the record; one that is lost is counted. The lock is held. */
bool trace_append(const uint8_t *record, size_t length);

/* The number of a definition with this content, written now if it is new; -1 if it cannot be. The
 * lock is held. */
int64_t trace_define(enum trace_definition kind, const uint8_t *content, size_t length);

/* The same for things of the MPI, without the lock. -1: none, or it cannot be described. */
int64_t trace_define_text(const char *text);
int64_t trace_define_info(MPI_Info info);
int64_t trace_define_group(MPI_Comm comm);
int64_t trace_define_type(MPI_Datatype type);

/* The number of a type that was defined before; -1: trace_define_type is needed. The lock is held.
 */
int64_t trace_known_type(MPI_Datatype type);

/* Looks up what definitions need from the MPI; false if it lacks something. */
bool trace_definitions_bind(void);

#endif
