#ifndef HARNESS_SHARE_H
#define HARNESS_SHARE_H

/* Cuts points into parts, of which the first `points mod parts` have one point more. */
static inline void share_of(int points, int parts, int index, int *low, int *count) {
  int base = points / parts, excess = points % parts;
  *count = base + (index < excess);
  *low = index * base + (index < excess ? index : excess);
}

#endif
