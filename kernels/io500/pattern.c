#include "pattern.h"

#include <stdlib.h>
#include <string.h>

enum { STAMP_EVERY_BYTES = 4096 };

/* splitmix64, by Sebastiano Vigna, public domain. */
uint64_t pattern_random(uint64_t *state) {
  uint64_t value = *state += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

bool pattern_make(struct pattern *pattern, size_t length, int signature, int owner) {
  uint64_t state = ((uint64_t)(uint32_t)signature << 32) | (uint32_t)owner;
  pattern->length = length;
  pattern->key = pattern_random(&state);
  size_t words = length / sizeof(uint64_t) + 1;
  uint64_t *values = malloc(words * sizeof *values);
  pattern->bytes = (unsigned char *)values;
  for (size_t i = 0; values != NULL && i < words; i++)
    values[i] = pattern_random(&state);
  return values != NULL;
}

void pattern_free(struct pattern *pattern) {
  free(pattern->bytes);
  pattern->bytes = NULL;
}

void pattern_stamp(struct pattern *pattern, int64_t place) {
  for (size_t at = 0; at + sizeof(uint64_t) <= pattern->length; at += STAMP_EVERY_BYTES) {
    uint64_t stamp = pattern->key ^ (uint64_t)(place + (int64_t)at);
    memcpy(pattern->bytes + at, &stamp, sizeof stamp);
  }
}

void pattern_compare(const struct pattern *pattern, const unsigned char *found, size_t from,
                     size_t length, int64_t place, struct mismatches *wrong) {
  const unsigned char *expected = pattern->bytes + from;
  if (memcmp(expected, found, length) == 0)
    return;
  for (size_t at = 0; at < length; at++)
    if (expected[at] != found[at])
      mismatches_add(wrong, place + (int64_t)at, found[at]);
}
