/* Memory for what a trace holds. Without it there is nothing to go on with, so the program ends. */
#ifndef FOREBAY_REPLAY_MEMORY_H
#define FOREBAY_REPLAY_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *memory_or_exit(void *items) {
  if (items == NULL) {
    perror("forebay-replay: no memory for the trace");
    exit(1);
  }
  return items;
}

static inline void *memory_zeroed(size_t count, size_t size) {
  return memory_or_exit(calloc(count + 1, size));
}

/* Room for at least `needed` items; what is new is zero. */
static inline void *memory_grown(void *items, size_t *room, size_t needed, size_t size) {
  size_t before = *room;
  if (needed <= before)
    return items;
  while (*room < needed)
    *room = *room > 0 ? 2 * *room : 64;
  items = memory_or_exit(realloc(items, *room * size));
  memset((char *)items + before * size, 0, (*room - before) * size);
  return items;
}

#endif
