#define _GNU_SOURCE
#include "record/lazy_io.h"

#include "include/lazy_ioctl.h"
#include "record/descriptors.h"
#include "record/mpi_handles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool ask(int descriptor) {
  struct lazy_path path;
  char link[32];
  memset(&path, 0, sizeof path);
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  if (readlink(link, path.path, sizeof path.path - 1) <= 0)
    return false;
  return ioctl(descriptor, FOREBAY_LAZY_BEGIN, &path) >= 0;
}

/* How many descriptors of the file took it. */
static int ask_all(const struct file *file) {
  int taken = 0;
  for (int at = descriptors_highest(); at >= 0; at--)
    taken += descriptors_find(at) == file && ask(at);
  return taken;
}

/* The first error of any descriptor, but for those that are not of such a file system. */
static int control_all(const struct file *file, unsigned long request) {
  int error = 0;
  for (int at = descriptors_highest(); at >= 0; at--)
    if (descriptors_find(at) == file && ioctl(at, request) < 0 && errno != ENOTTY && error == 0)
      error = errno;
  return error;
}

static bool may_be_lazy(struct file *file) {
  file_lock(file);
  bool may = file->wants_lazy && file->atomic_handles == 0;
  file_unlock(file);
  return may;
}

static void count_open(struct file *file) {
  file_lock(file);
  file->counters.lazy_opens++;
  file_unlock(file);
}

void lazy_begin(struct file *file) {
  if (may_be_lazy(file) && ask_all(file) > 0)
    count_open(file);
}

void lazy_begin_late(struct file *file, int descriptor) {
  if (may_be_lazy(file) && ask(descriptor))
    count_open(file);
}

/* A file that never was lazy is not asked. */
static bool was_lazy(struct file *file) {
  file_lock(file);
  bool was = file->counters.lazy_opens > 0;
  file_unlock(file);
  return was;
}

int lazy_sync(struct file *file) {
  return was_lazy(file) ? control_all(file, FOREBAY_LAZY_SYNC) : 0;
}

int lazy_set_atomic(struct file *file, MPI_File handle, bool is_atomic) {
  if (handles_set_atomic(handle, is_atomic) == is_atomic)
    return 0;
  file_lock(file);
  file->atomic_handles += is_atomic ? 1 : -1;
  file_unlock(file);
  if (is_atomic)
    return was_lazy(file) ? control_all(file, FOREBAY_LAZY_END) : 0;
  if (was_lazy(file) && may_be_lazy(file))
    ask_all(file);
  return 0;
}
