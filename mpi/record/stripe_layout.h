/* How a file is striped over the servers of its file system, where it is known: so far on the
 * emulated one only. */
#ifndef FOREBAY_MPI_STRIPE_LAYOUT_H
#define FOREBAY_MPI_STRIPE_LAYOUT_H

#include <stdint.h>

struct stripe_layout {
  int64_t stripe_count, stripe_bytes; /* 0: not known */
};

struct stripe_layout stripe_layout_of(const char *path);

#endif
