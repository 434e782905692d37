/* How many bytes were moved when: equal spans of time since the origin (MPI_Init, or the begin of a
 * process without MPI), whose length doubles whenever the run outgrows them. */
#ifndef FOREBAY_MPI_IO_HEATMAP_H
#define FOREBAY_MPI_IO_HEATMAP_H

#include "record/counters.h"

enum { HEAT_BINS = 128, HEAT_DOUBLINGS_MAX = 40 };

struct heat {
  int doublings; /* a bin lasts HEAT_FIRST_BIN_S * 2^doublings */
  int64_t bytes[DIRECTIONS][HEAT_BINS];
};

double heat_bin_s(int doublings);

/* How often the length must double until all bins together last so long. */
int heat_doublings_for(double run_s);

/* Bytes of a call that lasted from, to: seconds since the origin. They are spread evenly. */
void heat_note(struct heat *heat, enum direction direction, double from_s, double to_s,
               int64_t bytes);

/* To bins at least so long. */
void heat_widen(struct heat *heat, int doublings);

void heat_add(struct heat *sum, const struct heat *more);

/* The origin has moved to now: the first bin gets all bytes before. */
void heat_restart(struct heat *heat);

#endif
