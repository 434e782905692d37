/* Which sizes are the commonest, counted in a table of bounded length: sizes that appear when it is
 * full are not counted one by one. */
#ifndef FOREBAY_MPI_SIZE_HISTOGRAM_H
#define FOREBAY_MPI_SIZE_HISTOGRAM_H

#include <stdint.h>

enum {
  SIZES_MAX = 32,         /* for one file on one rank */
  SIZES_MERGED_MAX = 128, /* over all ranks */
  SIZES_REPORTED_MAX = 4,
};

struct size_count {
  int64_t bytes, calls; /* no calls: the entry is free */
};

void sizes_note(struct size_count *table, int room, int64_t bytes, int64_t calls);

/* The commonest, of equally common ones the larger; returns how many there are. */
int sizes_commonest(const struct size_count *table, int room,
                    struct size_count commonest[SIZES_REPORTED_MAX]);

#endif
