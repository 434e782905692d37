#define _GNU_SOURCE
#include "observe.h"

#include "call.h"
#include "trace.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The call on this very file that the thread is in, or NULL: progress made while it waits
 * elsewhere. */
static struct call *call_on(const struct file *file) {
  struct call *call = call_current();
  return call != NULL && call->file == file ? call : NULL;
}

/* Outside of any call, the operations under way are the non-blocking ones. */
static bool is_read_for_a_write(const struct file *file, const struct call *call) {
  if (call != NULL)
    return call->class == CALL_DATA && call->direction == WRITING;
  const int64_t *reads = file->counters.traffic[READING].calls;
  const int64_t *writes = file->counters.traffic[WRITING].calls;
  return writes[NONBLOCKING] + writes[NONBLOCKING_COLLECTIVE] > 0 &&
         reads[NONBLOCKING] + reads[NONBLOCKING_COLLECTIVE] == 0;
}

static void note_place(struct file *file, const struct transfer *transfer) {
  struct traffic *traffic = &file->counters.traffic[transfer->direction];
  int64_t *next = &file->next_offset[transfer->direction];
  if (*next >= 0 && transfer->offset > *next) {
    traffic->gaps++;
    traffic->gap_bytes += transfer->offset - *next;
  } else if (*next >= 0 && transfer->offset < *next) {
    traffic->steps_back++;
  }
  *next = transfer->offset + transfer->moved;
  if (file->stripe_bytes > 0 && transfer->moved == file->stripe_bytes &&
      transfer->offset % file->stripe_bytes == 0)
    traffic->stripe_sized++;
}

/* Going on after a short read, as ROMIO does at the end of the file, is no read of its own: whether
 * it happens depends on how far other ranks have extended the file by then. */
static void note_read_for_a_write(struct file *file, const struct transfer *transfer) {
  struct traffic *writes = &file->counters.traffic[WRITING];
  off_t end = transfer->offset + transfer->moved;
  writes->rmw_calls += transfer->offset != file->rmw_retry_offset;
  writes->rmw_bytes += transfer->moved;
  file->rmw_retry_offset = (size_t)transfer->moved < transfer->asked ? end : -1;
}

static void note_data(struct file *file, const struct transfer *transfer, const struct call *call) {
  struct traffic *traffic = &file->counters.traffic[transfer->direction];
  if (transfer->moved < 0) {
    traffic->system_failures++;
    return;
  }
  if (transfer->direction == READING && is_read_for_a_write(file, call)) {
    note_read_for_a_write(file, transfer);
    return;
  }
  traffic->system_calls++;
  traffic->system_bytes += transfer->moved;
  traffic->system_sizes[size_class(transfer->moved)]++;
  if (call != NULL && call->class == CALL_DATA &&
      (call->kind == COLLECTIVE || call->kind == SPLIT_COLLECTIVE || call->kind == SPLIT_END))
    traffic->collective_system_calls++;
  if (transfer->direction == WRITING)
    file->rmw_retry_offset = -1; /* the reads for this write are done */
  note_place(file, transfer);
}

void observe_data(struct file *file, struct transfer transfer, double elapsed_s) {
  if (files_are_locked_here())
    return;
  struct call *call = call_on(file);
  file_lock(file);
  note_data(file, &transfer, call);
  if (call == NULL)
    file->seconds.traffic[transfer.direction].outside += elapsed_s;
  file_unlock(file);
  trace_system_data(file, &transfer, elapsed_s, call_current() != NULL);
  if (call == NULL)
    return;
  call->data_s += elapsed_s;
  call->wrote_calls += transfer.direction == WRITING && transfer.moved >= 0;
}

void observe_other(struct file *file, enum system_call what, double elapsed_s) {
  if (files_are_locked_here())
    return;
  struct call *call = call_on(file);
  if (call != NULL)
    call->other_s += elapsed_s;
  file_lock(file);
  file->counters.locks += what == LOCK;
  file->counters.syncs += what == SYNC;
  file->counters.truncations += what == TRUNCATION;
  file_unlock(file);
}

/* The MPI may have made the name absolute, or its own. Only then the file system is asked. */
static bool is_same_file(const char *path, const struct file *file, int descriptor) {
  if (strcmp(path, file->name) == 0 || strcmp(path, file->path) == 0)
    return true;
  const char *last = strrchr(path, '/'), *own = strrchr(file->path, '/');
  if (last == NULL || own == NULL || strcmp(last, own) != 0)
    return false;
  struct stat one, other;
  return fstat(descriptor, &one) == 0 && stat(file->path, &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void note_opener(struct file *file, const void *caller) {
  Dl_info object;
  if (dladdr(caller, &object) == 0 || object.dli_fname == NULL)
    return;
  const char *slash = strrchr(object.dli_fname, '/');
  snprintf(file->opened_by, sizeof file->opened_by, "%s",
           slash != NULL ? slash + 1 : object.dli_fname);
}

void observe_open(const char *path, int descriptor, const void *caller) {
  struct call *call = call_current();
  struct file *file = call != NULL ? call->file : NULL;
  /* A child made by vfork opens its own descriptors, but in its parent's memory. */
  if (descriptor < 0 || getpid() != files_process())
    return;
  if (file == NULL || files_are_locked_here()) {
    if (descriptors_find(descriptor) != NULL) /* closed where we did not see it */
      descriptors_set(descriptor, NULL);
    return;
  }
  file_lock(file);
  bool is_ours = is_same_file(path, file, descriptor);
  if (is_ours) {
    note_opener(file, caller);
    file->next_offset[READING] = file->next_offset[WRITING] = -1;
  }
  file_unlock(file);
  descriptors_set(descriptor, is_ours ? file : NULL);
}

void observe_close(int descriptor) {
  /* A child made by vfork closes its own descriptors, but in its parent's memory. */
  if (descriptors_find(descriptor) != NULL && getpid() == files_process())
    descriptors_set(descriptor, NULL);
}
