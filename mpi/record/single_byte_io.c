#include "record/single_byte_io.h"

#include "base/clock.h"
#include "record/observation.h"
#include "record/trace_state.h"

bool pending_add(struct file *file, enum direction direction, int64_t offset) {
  int64_t next = __atomic_load_n(&file->tally->next_offset[direction], __ATOMIC_RELAXED);
  int64_t waiting = __atomic_load_n(&file->tally->characters[direction], __ATOMIC_RELAXED);
  if (trace_is_on || next < 0 || offset != next + waiting)
    return false;
  __atomic_add_fetch(&file->tally->characters[direction], 1, __ATOMIC_RELAXED);
  return true;
}

/* Multiples of unit below end. */
static int64_t multiples(int64_t end, int64_t unit) { return (end + unit - 1) / unit; }

static void count_bytes(struct file *file, enum direction direction, int64_t count, double now_s) {
  struct traffic *traffic = &file->tally->counters.traffic[direction];
  int64_t begin = file->tally->next_offset[direction], end = begin + count,
          unit = file->tally->alignment_bytes;
  double since_s = now_s - files_origin_s();
  traffic->system_calls += count;
  traffic->system_bytes += count;
  traffic->consecutive += count;
  traffic->system_sizes[size_class(1)] += count;
  sizes_note(file->tally->system_sizes[direction], SIZES_MAX, 1, count);
  heat_note(&file->tally->system_heat, direction, since_s, since_s, count);
  span_note(&file->tally->moments.system[direction], now_s, now_s);
  if (unit > 0)
    file->tally->counters.not_aligned += count - (multiples(end, unit) - multiples(begin, unit));
  if (end > file->tally->end_bytes[direction])
    file->tally->end_bytes[direction] = end;
  if (direction == WRITING && end > __atomic_load_n(&file->end_bytes, __ATOMIC_RELAXED))
    __atomic_store_n(&file->end_bytes, end, __ATOMIC_RELAXED);
  __atomic_store_n(&file->tally->next_offset[direction], end, __ATOMIC_RELAXED);
}

void pending_flush(struct file *file) {
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    if (__atomic_load_n(&file->tally->characters[direction], __ATOMIC_RELAXED) == 0)
      continue;
    int64_t count = __atomic_exchange_n(&file->tally->characters[direction], 0, __ATOMIC_RELAXED);
    count_bytes(file, direction, count, clock_s());
  }
}
