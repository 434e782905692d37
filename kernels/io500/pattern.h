/* The data of the files: no two transfers of a run, and no two runs, have the same bytes. */
#ifndef IO500_PATTERN_H
#define IO500_PATTERN_H

#include "harness/mismatches.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of data that is ready to be written or compared. */
struct pattern {
  unsigned char *bytes;
  size_t length;
  uint64_t key; /* of the run and the rank that writes */
};

/* False if there is no memory. owner: the rank that writes the data. */
bool pattern_make(struct pattern *pattern, size_t length, int signature, int owner);

void pattern_free(struct pattern *pattern);

/* Marks every 4 KiB with its place. place: of the first byte, over all that the owner writes.
 * Cheap, so that the time of a phase is that of the storage. */
void pattern_stamp(struct pattern *pattern, int64_t place);

/* Compares what was read at `place` with the stamped pattern, from its byte `from` on. The index of
 * a wrong value is its place. */
void pattern_compare(const struct pattern *pattern, const unsigned char *found, size_t from,
                     size_t length, int64_t place, struct mismatches *wrong);

/* The next of a sequence of random numbers. */
uint64_t pattern_random(uint64_t *state);

#endif
