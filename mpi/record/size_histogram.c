#include "record/size_histogram.h"

void sizes_note(struct size_count *table, int room, int64_t bytes, int64_t calls) {
  int at = (int)((uint64_t)bytes * 0x9e3779b97f4a7c15u >> 40) % room;
  for (int tries = 0; tries < room; tries++, at = at + 1 < room ? at + 1 : 0) {
    if (table[at].calls > 0 && table[at].bytes != bytes)
      continue;
    table[at].bytes = bytes;
    table[at].calls += calls;
    return;
  }
}

static int is_commoner(struct size_count one, struct size_count other) {
  return one.calls != other.calls ? one.calls > other.calls : one.bytes > other.bytes;
}

int sizes_commonest(const struct size_count *table, int room,
                    struct size_count commonest[SIZES_REPORTED_MAX]) {
  int count = 0;
  for (int i = 0; i < room; i++) {
    if (table[i].calls == 0)
      continue;
    int at = count < SIZES_REPORTED_MAX ? count++ : SIZES_REPORTED_MAX;
    for (; at > 0 && is_commoner(table[i], commonest[at - 1]); at--)
      if (at < SIZES_REPORTED_MAX)
        commonest[at] = commonest[at - 1];
    if (at < SIZES_REPORTED_MAX)
      commonest[at] = table[i];
  }
  return count;
}
