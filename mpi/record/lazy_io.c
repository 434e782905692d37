#define _GNU_SOURCE
#include "record/lazy_io.h"

#include "base/path.h"
#include "include/lazy_ioctl.h"
#include "record/descriptors.h"
#include "record/file_table.h"
#include "record/mpi_handles.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool any_has_writes, any_has_cache; /* atomic */

static bool ask(int descriptor) {
  struct lazy_path path;
  char link[DESCRIPTOR_LINK_BYTES];
  memset(&path, 0, sizeof path);
  path_descriptor_link(descriptor, link);
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
  file->tally->counters.lazy_opens++;
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
  bool was = file->tally->counters.lazy_opens > 0;
  file_unlock(file);
  return was;
}

static int take_error(struct file *file) {
  file_lock(file);
  int error = file->lazy_error;
  file->lazy_error = 0;
  file->has_lazy_writes = false;
  file_unlock(file);
  return error;
}

int lazy_sync(struct file *file) {
  if (!was_lazy(file))
    return 0;
  int earlier = take_error(file), error = control_all(file, FOREBAY_LAZY_SYNC);
  return earlier != 0 ? earlier : error;
}

void lazy_note_data(struct file *file, bool is_write) {
  if (file->tally->counters.lazy_opens == 0)
    return;
  file->has_lazy_cache = true;
  __atomic_store_n(&any_has_cache, true, __ATOMIC_RELAXED);
  if (!is_write)
    return;
  file->has_lazy_writes = true;
  __atomic_store_n(&any_has_writes, true, __ATOMIC_RELAXED);
}

/* The value of a flag of the file, which is false afterwards. */
static bool take(struct file *file, bool *flag) {
  file_lock(file);
  bool was = *flag;
  *flag = false;
  file_unlock(file);
  return was;
}

/* Not by the hook of fdatasync: the program did not call it. */
static int write_back_descriptors(const struct file *file) {
  int error = 0;
  for (int at = descriptors_highest(); at >= 0; at--)
    if (descriptors_find(at) == file && syscall(SYS_fdatasync, at) != 0 && error == 0)
      error = errno;
  return error;
}

/* Until the next lazy_sync; the first of several counts. */
static void keep_error(struct file *file, int error) {
  if (error == 0)
    return;
  file_lock(file);
  if (file->lazy_error == 0)
    file->lazy_error = error;
  file_unlock(file);
}

void lazy_write_back(struct file *file) {
  if (take(file, &file->has_lazy_writes))
    keep_error(file, write_back_descriptors(file));
}

void lazy_write_back_all(void) {
  if (!__atomic_exchange_n(&any_has_writes, false, __ATOMIC_RELAXED))
    return;
  struct file *file;
  for (int at = 0; (file = files_at(at)) != NULL; at++)
    lazy_write_back(file);
}

void lazy_forget_all(void) {
  if (!__atomic_exchange_n(&any_has_cache, false, __ATOMIC_RELAXED))
    return;
  struct file *file;
  for (int at = 0; (file = files_at(at)) != NULL; at++)
    if (take(file, &file->has_lazy_cache))
      keep_error(file, control_all(file, FOREBAY_LAZY_SYNC));
}

int lazy_set_atomic(struct file *file, MPI_File handle, bool is_atomic) {
  if (handles_set_atomic(handle, is_atomic) == is_atomic)
    return 0;
  file_lock(file);
  file->atomic_handles += is_atomic ? 1 : -1;
  file_unlock(file);
  if (is_atomic && was_lazy(file)) {
    int earlier = take_error(file), error = control_all(file, FOREBAY_LAZY_END);
    return earlier != 0 ? earlier : error;
  }
  if (!is_atomic && was_lazy(file) && may_be_lazy(file))
    ask_all(file);
  return 0;
}
