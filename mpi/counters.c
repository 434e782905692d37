#include "counters.h"

#include <stddef.h>

_Static_assert(sizeof(struct counters) % sizeof(int64_t) == 0, "counters holds counts only");
_Static_assert(sizeof(struct seconds) % sizeof(double) == 0, "seconds holds doubles only");

void counters_add(struct counters *sum, const struct counters *more) {
  int64_t *to = (int64_t *)sum;
  const int64_t *from = (const int64_t *)more;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
    to[i] += from[i];
}

void seconds_add(struct seconds *sum, const struct seconds *more) {
  double *to = (double *)sum;
  const double *from = (const double *)more;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
    to[i] += from[i];
}

void seconds_raise(struct seconds *most, const struct seconds *candidate) {
  double *to = (double *)most;
  const double *from = (const double *)candidate;
  for (size_t i = 0; i < sizeof *most / sizeof *to; i++)
    to[i] = from[i] > to[i] ? from[i] : to[i];
}

int size_class(int64_t bytes) {
  static const int64_t ends[SIZE_CLASSES - 1] = {100,     1 << 10,  10 << 10,  100 << 10, 1 << 20,
                                                 4 << 20, 10 << 20, 100 << 20, 1 << 30};
  int class = 0;
  while (class < SIZE_CLASSES - 1 && bytes > ends[class])
    class ++;
  return class;
}
