#include "record/descriptors.h"

#include "record/observation.h"
#include "record/positions.h"

static struct file *descriptors[DESCRIPTORS_MAX]; /* atomic */
static int highest = -1;                          /* atomic */

struct file *descriptors_find(int descriptor) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return NULL;
  struct file *file = __atomic_load_n(&descriptors[descriptor], __ATOMIC_ACQUIRE);
  return file != NULL && (!observation_is_lost() || observation_resume()) ? file : NULL;
}

static void raise_highest(int descriptor) {
  int known = __atomic_load_n(&highest, __ATOMIC_RELAXED);
  while (descriptor > known && !__atomic_compare_exchange_n(&highest, &known, descriptor, true,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

struct file *descriptors_set(int descriptor, struct file *file) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return NULL;
  if (file != NULL) {
    __atomic_add_fetch(&file->bound, 1, __ATOMIC_RELAXED);
    raise_highest(descriptor);
  } else {
    position_end(descriptor);
  }
  struct file *before = __atomic_exchange_n(&descriptors[descriptor], file, __ATOMIC_ACQ_REL);
  if (before != NULL)
    __atomic_sub_fetch(&before->bound, 1, __ATOMIC_RELAXED);
  return before;
}

int descriptors_highest(void) { return __atomic_load_n(&highest, __ATOMIC_RELAXED); }
