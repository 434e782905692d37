#include "record/counters.h"

#include <math.h>
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

void span_note(struct span *span, double begin_s, double end_s) {
  if (span->first == 0 || begin_s < span->first)
    span->first = begin_s;
  if (end_s > span->last)
    span->last = end_s;
}

static double *reading(struct moments *moments, size_t index) { return (double *)moments + index; }

enum { READINGS = sizeof(struct moments) / sizeof(double) };

struct moments moments_since(const struct moments *moments, double origin_s) {
  struct moments since = *moments;
  for (size_t i = 0; i < READINGS; i++) {
    double *at = reading(&since, i);
    *at = *at == 0 ? NAN : *at - origin_s;
  }
  return since;
}

struct moments moments_none(void) {
  struct moments none = {0};
  return moments_since(&none, 0);
}

static void merge_span(struct span *all, const struct span *more) {
  if (isnan(all->first) || more->first < all->first)
    all->first = more->first;
  if (isnan(all->last) || more->last > all->last)
    all->last = more->last;
}

void moments_merge(struct moments *all, const struct moments *more) {
  merge_span(&all->opened, &more->opened);
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    merge_span(&all->program[direction], &more->program[direction]);
    merge_span(&all->system[direction], &more->system[direction]);
  }
}

int64_t counters_metadata_calls(const struct counters *counters) {
  int64_t sum = counters->stats + counters->truncations;
  for (int call = 0; call < NAME_CALLS; call++)
    sum += counters->names[call];
  return sum;
}

int size_class(int64_t bytes) {
  static const int64_t ends[SIZE_CLASSES - 1] = {100,     1 << 10,  10 << 10,  100 << 10, 1 << 20,
                                                 4 << 20, 10 << 20, 100 << 20, 1 << 30};
  int class = 0;
  while (class < SIZE_CLASSES - 1 && bytes > ends[class])
    class ++;
  return class;
}
