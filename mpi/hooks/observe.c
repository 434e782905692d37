#define _GNU_SOURCE
#include "hooks/observe.h"

#include "base/clock.h"
#include "base/path.h"
#include "base/reentrancy.h"
#include "record/call.h"
#include "record/descriptors.h"
#include "record/failed_write.h"
#include "record/file_table.h"
#include "record/lazy_io.h"
#include "record/live_file.h"
#include "record/observation.h"
#include "record/positions.h"
#include "record/stripe_layout.h"
#include "settings/settings.h"
#include "trace/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert((int)READDIR - (int)ACCESS == (int)NAME_READDIR, "one order of name calls");

enum { KEPT_CALLS_MIN = 200, KEPT_BYTES_MIN = 256 << 10, KEPT_FILES_MIN = 32 };

/* The call on this very file that the thread is in, or NULL: progress made while it waits
 * elsewhere. */
static struct call *current_call_on(const struct file *file) {
  struct call *call = call_current();
  return call != NULL && call->file == file ? call : NULL;
}

/* Outside of any call, the operations under way are the non-blocking ones. */
static bool is_read_for_a_write(const struct file *file, const struct call *call) {
  if (call != NULL)
    return call->class == CALL_DATA && call->direction == WRITING;
  const int64_t *reads = file->tally->counters.traffic[READING].calls;
  const int64_t *writes = file->tally->counters.traffic[WRITING].calls;
  return writes[NONBLOCKING] + writes[NONBLOCKING_COLLECTIVE] > 0 &&
         reads[NONBLOCKING] + reads[NONBLOCKING_COLLECTIVE] == 0;
}

static void note_end(struct tally *tally, enum direction direction, int64_t end) {
  if (end > tally->end_bytes[direction])
    tally->end_bytes[direction] = end;
}

static void count_access_order(struct file *file, const struct transfer *transfer) {
  if (file->is_joint)
    return; /* there is no order among calls on several files */
  struct traffic *traffic = &file->tally->counters.traffic[transfer->direction];
  int64_t *next = &file->tally->next_offset[transfer->direction];
  int64_t offset = transfer->offset;
  int64_t end = offset + transfer->moved;
  if (*next >= 0 && offset > *next) {
    traffic->gaps++;
    traffic->gap_bytes += offset - *next;
  } else if (*next >= 0 && offset < *next) {
    traffic->steps_back++;
  } else {
    traffic->consecutive += *next >= 0;
  }
  if (file->tally->alignment_bytes > 0 && offset % file->tally->alignment_bytes != 0)
    file->tally->counters.not_aligned++;
  *next = end;
  note_end(file->tally, transfer->direction, end);
  if (transfer->direction == WRITING && end > __atomic_load_n(&file->end_bytes, __ATOMIC_RELAXED))
    __atomic_store_n(&file->end_bytes, end, __ATOMIC_RELAXED);
  if (file->tally->stripe_bytes > 0 && transfer->moved == file->tally->stripe_bytes &&
      offset % file->tally->stripe_bytes == 0)
    traffic->stripe_sized++;
}

/* A read that continues a short read, as ROMIO does at the end of the file, is not counted. Whether
 * it happens depends on how far other ranks have extended the file. */
static void note_read_for_a_write(struct file *file, const struct transfer *transfer) {
  struct traffic *writes = &file->tally->counters.traffic[WRITING];
  off_t end = transfer->offset + transfer->moved;
  writes->rmw_calls += transfer->offset != file->tally->rmw_retry_offset;
  writes->rmw_bytes += transfer->moved;
  file->tally->rmw_retry_offset = (size_t)transfer->moved < transfer->asked ? end : -1;
}

static void note_data(struct file *file, const struct transfer *transfer, const struct call *call,
                      double end_s) {
  enum direction direction = transfer->direction;
  struct traffic *traffic = &file->tally->counters.traffic[direction];
  if (transfer->moved < 0) {
    traffic->system_failures++;
    return;
  }
  heat_note(&file->tally->system_heat, direction, transfer->start_s - files_origin_s(),
            end_s - files_origin_s(), transfer->moved);
  if (direction == READING && is_read_for_a_write(file, call)) {
    note_read_for_a_write(file, transfer);
    return;
  }
  traffic->system_calls++;
  traffic->system_bytes += transfer->moved;
  traffic->system_sizes[size_class(transfer->moved)]++;
  sizes_note(file->tally->system_sizes[direction], SIZES_MAX, transfer->moved, 1);
  span_note(&file->tally->moments.system[direction], transfer->start_s, end_s);
  if (call != NULL && call->class == CALL_DATA &&
      (call->kind == COLLECTIVE || call->kind == SPLIT_COLLECTIVE || call->kind == SPLIT_END))
    traffic->collective_system_calls++;
  if (direction == WRITING)
    file->tally->rmw_retry_offset = -1; /* the reads for this write are done */
  count_access_order(file, transfer);
}

/* A call whose place is not known is taken to go on where the last one ended. */
static int64_t place_after_the_last(const struct file *file, enum direction direction) {
  return file->tally->next_offset[direction] >= 0 ? file->tally->next_offset[direction] : 0;
}

/* Programs without MPI that do little I/O get no live file: a script may have thousands of them. */
static void create_live_file_if_busy(const struct file *file) {
  const struct counters *counters = &file->tally->counters;
  const struct traffic *reads = &counters->traffic[READING], *writes = &counters->traffic[WRITING];
  int64_t calls = counters->opens + counters->open_failures + counters_metadata_calls(counters) +
                  reads->system_calls + writes->system_calls;
  if (settings.ranks > 0 || calls >= KEPT_CALLS_MIN ||
      reads->system_bytes + writes->system_bytes >= KEPT_BYTES_MIN ||
      files_at(KEPT_FILES_MIN - 1) != NULL)
    files_move_to_live();
}

void observe_data(struct file *file, struct transfer transfer, double elapsed_s) {
  if (in_critical_section())
    return;
  if (transfer.moved < 0 && transfer.direction == WRITING)
    failed_write_note(file, "write", errno);
  struct call *call = current_call_on(file);
  file_lock(file);
  if (transfer.offset < 0)
    transfer.offset = place_after_the_last(file, transfer.direction);
  note_data(file, &transfer, call, transfer.start_s + elapsed_s);
  lazy_note_data(file, transfer.direction == WRITING);
  if (file->layer != LAYER_MPIIO)
    file->tally->seconds.traffic[transfer.direction].data += elapsed_s;
  else if (call == NULL)
    file->tally->seconds.traffic[transfer.direction].outside += elapsed_s;
  file_unlock(file);
  if (!live_is_settled())
    create_live_file_if_busy(file);
  trace_system_data(file, &transfer, elapsed_s);
  if (call == NULL)
    return;
  call->data_s += elapsed_s;
  call->wrote_calls += transfer.direction == WRITING && transfer.moved >= 0;
}

static void trace_other(struct file *file, enum system_call what, int64_t argument,
                        double elapsed_s) {
  static const enum trace_system traced[] = {
      [LOCK] = TRACE_SYSTEM_LOCK,
      [SEEK] = TRACE_SYSTEM_SEEK,
      [SYNC] = TRACE_SYSTEM_SYNC,
      [TRUNCATION] = TRACE_SYSTEM_TRUNCATION,
      [STAT] = TRACE_SYSTEM_STAT,
      [MAPPING] = TRACE_SYSTEM_MAPPING,
      [ALLOCATION] = TRACE_SYSTEM_ALLOCATION,
  };
  if (what < ACCESS && !file->is_joint)
    trace_system_other(file, traced[what], argument, elapsed_s);
}

void observe_other(struct file *file, enum system_call what, int64_t argument, double elapsed_s) {
  if (in_critical_section())
    return;
  struct call *call = current_call_on(file);
  if (call != NULL)
    call->other_s += elapsed_s;
  file_lock(file);
  file->tally->counters.locks += what == LOCK;
  file->tally->counters.syncs += what == SYNC;
  file->tally->counters.truncations += what == TRUNCATION;
  file->tally->counters.seeks += what == SEEK;
  file->tally->counters.stats += what == STAT;
  file->tally->counters.mmaps += what == MAPPING;
  if (what >= ACCESS)
    file->tally->counters.names[what - ACCESS]++;
  if (file->layer != LAYER_MPIIO)
    *(what == SYNC ? &file->tally->seconds.sync : &file->tally->seconds.metadata) += elapsed_s;
  file_unlock(file);
  trace_other(file, what, argument, elapsed_s);
}

void observe_mapping(struct file *file, int64_t bytes, bool is_written) {
  if (in_critical_section())
    return;
  file_lock(file);
  file->tally->counters.mapped_bytes += bytes;
  file->tally->counters.mapped_to_write_bytes += is_written ? bytes : 0;
  file_unlock(file);
}

/* The MPI may have made the name absolute, or its own. Only then does it take a call to the file
 * system. */
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
  snprintf(file->tally->opened_by, sizeof file->tally->opened_by, "%s",
           slash != NULL ? slash + 1 : object.dli_fname);
}

/* A file that is created has no failed write either; its name may have had one before. */
static void forget_if_emptied(const struct file *file, const struct opening *opening) {
  if ((opening->flags & (O_TRUNC | O_EXCL)) != 0)
    failed_write_forget(file);
}

static void open_in_call(struct file *file, const struct opening *opening) {
  if (opening->descriptor < 0)
    return;
  struct stat status;
  bool has_status = fstat(opening->descriptor, &status) == 0;
  file_lock(file);
  bool is_ours = is_same_file(opening->path, file, opening->descriptor);
  if (is_ours) {
    note_opener(file, opening->caller);
    file->tally->alignment_bytes = has_status ? status.st_blksize : 0;
    __atomic_store_n(&file->end_bytes, has_status ? status.st_size : 0, __ATOMIC_RELAXED);
    file->tally->next_offset[READING] = file->tally->next_offset[WRITING] = -1;
  }
  file_unlock(file);
  descriptors_set(opening->descriptor, is_ours ? file : NULL);
  if (is_ours) {
    forget_if_emptied(file, opening);
    position_begin(opening->descriptor, (opening->flags & O_APPEND) != 0);
    trace_system_open(file, opening);
    /* MPI_File_open itself asks when it is done. */
    if (call_current() != NULL && call_current()->class != CALL_OPEN)
      lazy_begin_late(file, opening->descriptor);
  }
}

/* Used in a section only. Not on the stack, which is small in some signal handlers. */
static __thread char path_room[PATH_BYTES_MAX] __attribute__((tls_model("initial-exec")));

/* A path that was a regular file when it was opened before still is one, and has the size that this
 * process knows; where it appends, another process may have done so as well. */
static struct file *record_known(const struct opening *opening, struct stat *status) {
  struct file *file = opening->descriptor >= 0 && opening->descriptor < DESCRIPTORS_MAX
                          ? files_known(path_room, opening->layer)
                          : NULL;
  if (file == NULL || file->tally->alignment_bytes == 0 || (opening->flags & O_APPEND) != 0)
    return NULL;
  status->st_blksize = file->tally->alignment_bytes;
  status->st_size =
      (opening->flags & O_TRUNC) != 0 ? 0 : __atomic_load_n(&file->end_bytes, __ATOMIC_RELAXED);
  return file;
}

/* Only what can be read at an offset: no directories, pipes, terminals. */
static struct file *record_of(const struct opening *opening, struct stat *status) {
  if (!path_absolute(opening->directory, opening->path, path_room))
    return NULL;
  struct file *known = record_known(opening, status);
  if (known != NULL || path_is_excluded(path_room))
    return known;
  if (opening->descriptor < 0)
    return files_for_failure(path_room, opening->layer);
  if (fstat(opening->descriptor, status) != 0 || !S_ISREG(status->st_mode))
    return NULL;
  if (opening->descriptor < DESCRIPTORS_MAX)
    return files_for_path(path_room, opening->layer);
  files_note_dropped();
  return NULL;
}

static void open_directly(const struct opening *opening) {
  int error = errno;
  double end_s = clock_s();
  struct stat status;
  if (path_is_of_mpi(opening->caller))
    return;
  critical_section_begin();
  struct file *file = record_of(opening, &status);
  critical_section_end();
  if (file == NULL)
    return;
  bool is_open = opening->descriptor >= 0;
  struct stripe_layout layout = stripe_layout_of(file->path);
  file_lock(file);
  file->tally->counters.opens += is_open;
  file->tally->counters.open_failures += !is_open;
  file->tally->seconds.open += end_s - opening->start_s;
  if (is_open) {
    file->tally->alignment_bytes = status.st_blksize;
    __atomic_store_n(&file->end_bytes, status.st_size, __ATOMIC_RELAXED);
    file->tally->stripe_count = layout.stripe_count;
    file->tally->stripe_bytes = layout.stripe_bytes;
    file->tally->next_offset[READING] = file->tally->next_offset[WRITING] = -1;
    span_note(&file->tally->moments.opened, opening->start_s, 0);
  }
  file_unlock(file);
  if (!is_open && (opening->flags & O_CREAT) != 0)
    failed_write_note(file, "open", error);
  if (is_open) {
    forget_if_emptied(file, opening);
    descriptors_set(opening->descriptor, file);
    position_begin(opening->descriptor, (opening->flags & O_APPEND) != 0);
  }
  if (!live_is_settled())
    create_live_file_if_busy(file);
  trace_system_open(file, opening);
}

/* NULL for what is not recorded. */
static struct file *file_of(int directory, const char *name) {
  if (name[0] == '\0') /* AT_EMPTY_PATH */
    return descriptors_find(directory);
  if (!path_absolute(directory, name, path_room))
    return NULL;
  struct file *file = files_known(path_room, LAYER_POSIX);
  if (file == NULL)
    file = files_known(path_room, LAYER_STDIO);
  return file != NULL || path_is_excluded(path_room) ? file : files_for_others(LAYER_POSIX);
}

bool observe_path(int directory, const char *name, enum system_call what, int64_t argument,
                  const void *caller, double elapsed_s) {
  bool is_of_mpi = call_current() != NULL || path_is_of_mpi(caller);
  if (name == NULL || is_of_mpi || in_critical_section())
    return false;
  critical_section_begin();
  struct file *file = file_of(directory, name);
  critical_section_end();
  if (file == NULL || file->layer == LAYER_MPIIO)
    return false;
  observe_other(file, what, argument, elapsed_s);
  if (!live_is_settled())
    create_live_file_if_busy(file);
  return true;
}

bool observe_descriptor_of_directory(int descriptor, const void *caller) {
  return observe_path(descriptor, ".", OPENDIR, 0, caller, 0);
}

void observe_other_files(enum system_call what, double elapsed_s) {
  struct file *file = in_critical_section() ? NULL : files_for_others(LAYER_POSIX);
  if (file != NULL)
    observe_other(file, what, 0, elapsed_s);
}

/* A child made by vfork opens and closes its own descriptors, but in its parent's memory. Only
 * programs that call vfork pay for the look at who it is. */
int vfork_was_called; /* atomic; set by hook_slots.S */

static bool is_our_process(void) {
  return !__atomic_load_n(&vfork_was_called, __ATOMIC_RELAXED) || getpid() == files_process();
}

void observe_open(const struct opening *opening) {
  if (!files_are_observed() || !is_our_process())
    return;
  struct call *call = call_current();
  descriptors_set(opening->descriptor, NULL); /* if it was closed where we did not see it */
  if (in_critical_section())
    return;
  if (call != NULL && call->file != NULL)
    open_in_call(call->file, opening);
  else
    open_directly(opening);
}

struct file *observe_close(int descriptor) {
  if (descriptors_find(descriptor) == NULL || !is_our_process())
    return NULL;
  return descriptors_set(descriptor, NULL);
}

void observe_closed(struct file *file, double start_s, double end_s) {
  if (file == NULL || in_critical_section())
    return;
  trace_system_other(file, TRACE_SYSTEM_CLOSE, 0, end_s - start_s);
  if (file->layer == LAYER_MPIIO)
    return;
  file_lock(file);
  file->tally->seconds.close += end_s - start_s;
  if (end_s > file->tally->moments.opened.last)
    file->tally->moments.opened.last = end_s;
  file_unlock(file);
}

/* Those of MPI-IO are not followed: what the MPI does with its descriptors is its own. */
void observe_duplicate(int from, int to) {
  struct file *file = descriptors_find(from);
  if (file != NULL && file->layer == LAYER_MPIIO)
    file = NULL;
  bool is_known = file != NULL || descriptors_find(to) != NULL;
  if (!is_known || to < 0 || from == to || !is_our_process())
    return;
  struct file *before = descriptors_set(to, file);
  if (file != NULL)
    position_share(from, to);
  double now_s = clock_s();
  observe_closed(before, now_s, now_s);
  if (file != NULL && !in_critical_section())
    trace_system_other(file, TRACE_SYSTEM_DUPLICATE, 0, 0);
}

/* All that was noted of a file before it was known how it is used. One lock after the other, since
 * two threads could wait for each other. */
static void merge_counters(struct file *from, struct file *to) {
  file_lock(from);
  struct counters counters = from->tally->counters;
  struct seconds seconds = from->tally->seconds;
  struct span opened = from->tally->moments.opened;
  from->tally->counters = (struct counters){0};
  from->tally->seconds = (struct seconds){0};
  from->tally->moments = (struct moments){0};
  file_unlock(from);
  file_lock(to);
  counters_add(&to->tally->counters, &counters);
  seconds_add(&to->tally->seconds, &seconds);
  if (opened.first > 0)
    span_note(&to->tally->moments.opened, opened.first, opened.last);
  to->tally->alignment_bytes = from->tally->alignment_bytes;
  to->tally->stripe_bytes = from->tally->stripe_bytes;
  to->tally->stripe_count = from->tally->stripe_count;
  file_unlock(to);
}

static void count_as_opened(struct file *file, bool was_opened) {
  file_lock(file);
  file->tally->counters.opens += was_opened;
  file->tally->counters.inherited += !was_opened;
  if (was_opened)
    span_note(&file->tally->moments.opened, clock_s(), 0);
  file_unlock(file);
}

struct file *reassign_layer(enum layer layer, int descriptor, struct file *file) {
  bool has_moved = file_has_moved_data(file);
  if (file->layer == layer || file->layer == LAYER_MPIIO || (has_moved && layer == LAYER_POSIX) ||
      in_critical_section() || !is_our_process())
    return file;
  struct file *other = files_for_path(file->path, layer);
  if (other == NULL)
    return file;
  if (has_moved)
    count_as_opened(other, file->tally->counters.opens > 0);
  else
    merge_counters(file, other);
  __atomic_store_n(&other->end_bytes, __atomic_load_n(&file->end_bytes, __ATOMIC_RELAXED),
                   __ATOMIC_RELAXED);
  descriptors_set(descriptor, other);
  return other;
}
