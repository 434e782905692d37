/* The non-blocking calls that are under way, and the records of their completion. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/text.h"
#include "trace/trace_map.h"
#include "trace/trace_record.h"

static struct trace_map numbers; /* of the calls under way, by request */
static int64_t last_completed;   /* the lock is held */

/* Requests that a call is about to wait for, by the frame of the call: on return the MPI has
 * overwritten the handles of those that are complete. */
static struct waiting {
  const void *frame;
  int64_t number;
  MPI_Request request;
  int index;
} waiting[TRACE_MAP_ENTRIES_MAX];
static int waiting_count; /* atomic for reading */

/* The lock is held. */
void trace_request(MPI_Request request, int64_t number) {
  if (!trace_map_set(&numbers, TRACE_KEY(request), number))
    trace_count_lost();
}

/* The lock is held. */
static int mark(const void *frame, const MPI_Request *requests, int count) {
  int marked = 0;
  for (int i = 0; i < count; i++) {
    int64_t number = trace_map_find(&numbers, TRACE_KEY(requests[i]));
    if (number >= 0 && waiting_count < TRACE_MAP_ENTRIES_MAX) {
      waiting[waiting_count++] = (struct waiting){frame, number, requests[i], i};
      marked++;
    }
  }
  return marked;
}

bool trace_before_wait(const void *frame, const MPI_Request *requests, int count) {
  if (!trace_is_on || __atomic_load_n(&numbers.count, __ATOMIC_RELAXED) == 0 || requests == NULL ||
      !trace_enter())
    return false;
  int marked = mark(frame, requests, count);
  trace_leave();
  return marked > 0;
}

/* The numbers that this call has completed, as a record's fields; how many there are. */
static int collect(const void *frame, const MPI_Request *requests, struct text *fields) {
  int count = 0, kept = 0;
  for (int i = 0; i < waiting_count; i++) {
    struct waiting one = waiting[i];
    if (one.frame != frame) {
      waiting[kept++] = one;
      continue;
    }
    if (requests[one.index] == one.request ||
        trace_map_find(&numbers, TRACE_KEY(one.request)) != one.number)
      continue;
    uint8_t bytes[TRACE_VARINT_BYTES_MAX];
    trace_map_remove(&numbers, TRACE_KEY(one.request));
    text_add_bytes(fields, bytes, trace_put(bytes, trace_fold(one.number - last_completed)));
    last_completed = one.number;
    count++;
  }
  waiting_count = kept;
  return count;
}

void trace_after_wait(const void *frame, const MPI_Request *requests, double start_s,
                      int64_t mark) {
  struct trace_record head;
  struct text record = {0}, fields = {0};
  if (!trace_enter())
    return;
  int count = collect(frame, requests, &fields);
  if (count > 0) {
    trace_add_head(&head, (struct trace_head){.tag = TRACE_COMPLETE,
                                              .overlap = trace_call_count() - mark,
                                              .start_s = start_s,
                                              .end_s = clock_s()});
    trace_add(&head, (uint64_t)count);
    text_add_bytes(&record, head.bytes, head.length);
    text_add_bytes(&record, text_of(&fields), fields.length);
    if (record.is_cut || fields.is_cut)
      trace_count_lost();
    else
      trace_append((const uint8_t *)text_of(&record), record.length);
  }
  text_clear(&record);
  text_clear(&fields);
  trace_leave();
}
