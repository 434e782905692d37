#include "record/io_heatmap.h"

#include <string.h>

static const double first_bin_s = 0.1;

double heat_bin_s(int doublings) { return first_bin_s * (double)(1LL << doublings); }

int heat_doublings_for(double run_s) {
  int doublings = 0;
  while (doublings < HEAT_DOUBLINGS_MAX && run_s > heat_bin_s(doublings) * HEAT_BINS)
    doublings++;
  return doublings;
}

static void double_length(int64_t bytes[HEAT_BINS]) {
  for (int bin = 0; bin < HEAT_BINS / 2; bin++)
    bytes[bin] = bytes[2 * bin] + bytes[2 * bin + 1];
  memset(bytes + HEAT_BINS / 2, 0, HEAT_BINS / 2 * sizeof *bytes);
}

void heat_widen(struct heat *heat, int doublings) {
  for (; heat->doublings < doublings; heat->doublings++)
    for (int direction = 0; direction < DIRECTIONS; direction++)
      double_length(heat->bytes[direction]);
}

static int bin_at(double at_bins) {
  return at_bins <= 0 ? 0 : at_bins >= HEAT_BINS ? HEAT_BINS - 1 : (int)at_bins;
}

void heat_note(struct heat *heat, enum direction direction, double from_s, double to_s,
               int64_t bytes) {
  if (to_s >= heat_bin_s(heat->doublings) * HEAT_BINS)
    heat_widen(heat, heat_doublings_for(to_s));
  double per_s = 1 / heat_bin_s(heat->doublings);
  double from = from_s > 0 ? from_s * per_s : 0, to = to_s > 0 ? to_s * per_s : 0;
  int last = bin_at(to);
  int64_t done = 0;
  for (int bin = bin_at(from); bin < last; bin++) {
    int64_t by_its_end = (int64_t)((double)bytes * ((bin + 1 - from) / (to - from)));
    heat->bytes[direction][bin] += by_its_end - done;
    done = by_its_end;
  }
  heat->bytes[direction][last] += bytes - done;
}

void heat_add(struct heat *sum, const struct heat *more) {
  struct heat added = *more;
  heat_widen(&added, sum->doublings);
  heat_widen(sum, added.doublings);
  for (int direction = 0; direction < DIRECTIONS; direction++)
    for (int bin = 0; bin < HEAT_BINS; bin++)
      sum->bytes[direction][bin] += added.bytes[direction][bin];
}

void heat_restart(struct heat *heat) {
  struct heat fresh = {0};
  for (int direction = 0; direction < DIRECTIONS; direction++)
    for (int bin = 0; bin < HEAT_BINS; bin++)
      fresh.bytes[direction][0] += heat->bytes[direction][bin];
  *heat = fresh;
}
