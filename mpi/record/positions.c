#include "record/positions.h"

struct position {
  int names; /* atomic: descriptors that share it; 0: free */
  int appends;
  int64_t offset; /* atomic */
};

/* As many as there are observed descriptors, so one is always free. */
static struct position positions[DESCRIPTORS_MAX];
static struct position *by_descriptor[DESCRIPTORS_MAX]; /* atomic */

static struct position *find(int descriptor) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return NULL;
  return __atomic_load_n(&by_descriptor[descriptor], __ATOMIC_ACQUIRE);
}

static struct position *take(int near) {
  int at = near;
  for (int tries = 0; tries < DESCRIPTORS_MAX; tries++, at = (at + 1) % DESCRIPTORS_MAX) {
    int unused = 0;
    if (__atomic_compare_exchange_n(&positions[at].names, &unused, 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return &positions[at];
  }
  return NULL;
}

static void put(int descriptor, struct position *position) {
  struct position *before =
      __atomic_exchange_n(&by_descriptor[descriptor], position, __ATOMIC_ACQ_REL);
  if (before != NULL)
    __atomic_sub_fetch(&before->names, 1, __ATOMIC_ACQ_REL);
}

void position_begin(int descriptor, bool appends) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return;
  struct position *position = take(descriptor);
  if (position != NULL) {
    __atomic_store_n(&position->offset, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&position->appends, appends, __ATOMIC_RELAXED);
  }
  put(descriptor, position);
}

void position_share(int from, int to) {
  struct position *position = find(from);
  if (to < 0 || to >= DESCRIPTORS_MAX)
    return;
  if (position != NULL)
    __atomic_add_fetch(&position->names, 1, __ATOMIC_ACQ_REL);
  put(to, position);
}

void position_end(int descriptor) {
  if (find(descriptor) != NULL)
    put(descriptor, NULL);
}

void position_set(int descriptor, int64_t offset) {
  struct position *position = find(descriptor);
  if (position != NULL)
    __atomic_store_n(&position->offset, offset, __ATOMIC_RELAXED);
}

void position_set_appends(int descriptor, bool appends) {
  struct position *position = find(descriptor);
  if (position != NULL)
    __atomic_store_n(&position->appends, appends, __ATOMIC_RELAXED);
}

void position_step_back(int descriptor) {
  struct position *position = find(descriptor);
  if (position != NULL && __atomic_load_n(&position->offset, __ATOMIC_RELAXED) > 0)
    __atomic_sub_fetch(&position->offset, 1, __ATOMIC_RELAXED);
}

int64_t position_advance(int descriptor, enum direction direction, int64_t moved_bytes,
                         int64_t *end_bytes) {
  struct position *position = find(descriptor);
  int64_t length = moved_bytes > 0 ? moved_bytes : 0;
  if (position == NULL)
    return POSITION_UNKNOWN;
  if (direction == WRITING && __atomic_load_n(&position->appends, __ATOMIC_RELAXED)) {
    int64_t began = __atomic_fetch_add(end_bytes, length, __ATOMIC_RELAXED);
    __atomic_store_n(&position->offset, began + length, __ATOMIC_RELAXED);
    return began;
  }
  if (__atomic_load_n(&position->offset, __ATOMIC_RELAXED) < 0)
    return POSITION_UNKNOWN;
  return __atomic_fetch_add(&position->offset, length, __ATOMIC_RELAXED);
}
