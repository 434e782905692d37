#include "particles.h"

#include "harness/values.h"

#include <stdlib.h>
#include <string.h>

const struct dataset datasets[DATASETS] = {{"x", false},  {"y", false},  {"z", false},
                                           {"id1", true}, {"id2", true}, {"px", false},
                                           {"py", false}, {"pz", false}};

bool particles_allocate(struct particles *particles) {
  bool good = true;
  for (int i = 0; i < DATASETS; i++) {
    particles->values[i] = malloc((size_t)particles->count * VALUE_BYTES);
    good = good && particles->values[i] != NULL;
  }
  return good;
}

void particles_free(struct particles *particles) {
  for (int i = 0; i < DATASETS; i++)
    free(particles->values[i]);
}

static int64_t first_index(const struct particles *particles, int step, int dataset) {
  return ((int64_t)step * DATASETS + dataset) * particles->total + particles->first;
}

void particles_fill(struct particles *particles, int step) {
  for (int dataset = 0; dataset < DATASETS; dataset++) {
    int64_t first = first_index(particles, step, dataset);
    float *real = particles->values[dataset];
    int32_t *whole = particles->values[dataset];
    for (int i = 0; i < particles->count; i++)
      if (datasets[dataset].whole)
        whole[i] = value_int(first + i);
      else
        real[i] = value_float(first + i);
  }
}

void particles_poison(struct particles *particles) {
  for (int i = 0; i < DATASETS; i++)
    memset(particles->values[i], 0xff, (size_t)particles->count * VALUE_BYTES);
}

void particles_compare(const struct particles *particles, int step, struct mismatches *wrong) {
  for (int dataset = 0; dataset < DATASETS; dataset++) {
    int64_t first = first_index(particles, step, dataset);
    const float *real = particles->values[dataset];
    const int32_t *whole = particles->values[dataset];
    for (int i = 0; i < particles->count; i++) {
      if (datasets[dataset].whole && whole[i] != value_int(first + i))
        mismatches_add(wrong, first + i, whole[i]);
      if (!datasets[dataset].whole && real[i] != value_float(first + i))
        mismatches_add(wrong, first + i, (double)real[i]);
    }
  }
}
