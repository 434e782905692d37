#define _GNU_SOURCE
#include "trace/trace_record.h"

#include "trace/trace_file.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread volatile bool is_inside __attribute__((tls_model("initial-exec")));
static __thread int own_thread __attribute__((tls_model("initial-exec"))); /* 0: not numbered */
static int last_thread = 1, thread_count;
static int64_t last_end;
static struct trace_losses losses; /* atomic */
static double origin_s;

bool trace_enter(void) {
  if (is_inside)
    return false;
  is_inside = true;
  pthread_mutex_lock(&lock);
  return true;
}

void trace_leave(void) {
  pthread_mutex_unlock(&lock);
  is_inside = false;
}

void trace_count_lost(void) { __atomic_fetch_add(&losses.calls, 1, __ATOMIC_RELAXED); }

void trace_count_lost_system(void) {
  __atomic_fetch_add(&losses.system_calls, 1, __ATOMIC_RELAXED);
}

int64_t trace_ticks(double s) { return (int64_t)((s - origin_s) * (1e9 / TRACE_TICK_NS)); }

static int thread_number(void) {
  if (own_thread == 0)
    own_thread = ++thread_count;
  return own_thread;
}

void trace_add_head(struct trace_record *record, struct trace_head head) {
  int thread = thread_number();
  int64_t start = trace_ticks(head.start_s), end = trace_ticks(head.end_s);
  int flags = head.flags | (thread != last_thread ? TRACE_OTHER_THREAD : 0) |
              (head.overlap > 0 ? TRACE_OVERLAP : 0) |
              (head.code != TRACE_SUCCESS ? TRACE_FAILED : 0);
  record->bytes[0] = (uint8_t)head.tag;
  record->bytes[1] = (uint8_t)flags;
  record->length = 2;
  if (flags & TRACE_OTHER_THREAD)
    trace_add(record, (uint64_t)thread - 1);
  if (flags & TRACE_OVERLAP)
    trace_add(record, (uint64_t)head.overlap);
  if (flags & TRACE_FAILED)
    trace_add_signed(record, head.code);
  trace_add_signed(record, start - last_end);
  trace_add(record, (uint64_t)(end - start));
  last_thread = thread;
  last_end = end;
  if (!trace_is_of_mpi(head.tag))
    __atomic_store_n(&trace_calls_ended, trace_calls_ended + 1, __ATOMIC_RELAXED);
}

bool trace_append(const uint8_t *record, size_t length) {
  bool is_kept = trace_file_add(record, length, last_end);
  if (!is_kept && trace_is_of_mpi(record[0]))
    trace_count_lost_system();
  else if (!is_kept && record[0] >= TRACE_OPEN)
    trace_count_lost();
  return is_kept;
}

struct trace_losses trace_losses(void) {
  return losses;
}

void trace_begin_clock(double now_s) { origin_s = now_s; }
