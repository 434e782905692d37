#define _GNU_SOURCE
#include "record/files.h"

#include "base/arena.h"
#include "base/path.h"
#include "base/section.h"
#include "record/characters.h"
#include "record/positions.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  RECORDS_MAX = 2 * FILES_MAX,
  SLOTS = 4 * RECORDS_MAX,     /* a power of two */
  FAILURES_MAX = FILES_MAX / 2 /* records without MPI-IO, beyond which a failed open makes none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards records, handles and dropped */
static struct file *files[RECORDS_MAX];
static struct file *slots[SLOTS]; /* by path and layer */
static int file_count, direct_count;
static struct opened handles[HANDLES_MAX];
static int64_t dropped;
static struct file *descriptors[DESCRIPTORS_MAX]; /* atomic */
static int highest = -1;                          /* atomic */
static bool is_child, is_observed;                /* atomic */
static double origin_s;
static pid_t process;

void file_lock(struct file *file) {
  section_lock(&file->lock);
  characters_settle(file);
}

void file_unlock(struct file *file) { section_unlock(&file->lock); }

bool files_are_locked_here(void) { return section_is_here(); }

static struct file *new_file(const char *path, enum layer layer) {
  struct file *file = arena_take(sizeof *file);
  char *kept = arena_copy(path);
  if (file == NULL || kept == NULL)
    return NULL;
  pthread_mutex_init(&file->lock, NULL);
  file->path = kept;
  file->layer = layer;
  file->next_offset[READING] = file->next_offset[WRITING] = -1;
  file->rmw_retry_offset = -1;
  return file;
}

/* The lock is held. The slot that holds the record, or the empty one where the search ends. */
static struct file **slot_for(const char *path, enum layer layer) {
  size_t at = path_hash(path, layer) >> 20 & (SLOTS - 1);
  while (slots[at] != NULL && (slots[at]->layer != layer || strcmp(slots[at]->path, path) != 0))
    at = (at + 1) & (SLOTS - 1);
  return &slots[at];
}

/* The lock is held. */
static struct file *find_or_make(const char *path, enum layer layer) {
  struct file **slot = slot_for(path, layer);
  int *count = layer == LAYER_MPIIO ? &file_count : &direct_count;
  if (*slot != NULL || *count == FILES_MAX)
    return *slot;
  struct file *file = new_file(path, layer);
  if (file == NULL)
    return NULL;
  files[file_count + direct_count] = *slot = file;
  ++*count;
  return file;
}

struct file *files_for_name(const char *name) {
  char path[PATH_BYTES_MAX];
  name = path_without_prefix(name);
  bool is_known = path_absolute(AT_FDCWD, name, path);
  char *kept = strdup(name);
  section_lock(&lock);
  struct file *file = is_known && kept != NULL ? find_or_make(path, LAYER_MPIIO) : NULL;
  dropped += file == NULL;
  section_unlock(&lock);
  if (file == NULL) {
    free(kept);
    return NULL;
  }
  file_lock(file);
  free(file->name);
  file->name = kept;
  file_unlock(file);
  return file;
}

struct file *files_for_path(const char *path, enum layer layer) {
  section_lock(&lock);
  struct file *file = find_or_make(path, layer);
  dropped += file == NULL;
  section_unlock(&lock);
  return file;
}

struct file *files_for_failure(const char *path, enum layer layer) {
  section_lock(&lock);
  bool has_room = direct_count < FAILURES_MAX;
  struct file *file = has_room ? find_or_make(path, layer) : *slot_for(path, layer);
  section_unlock(&lock);
  return file;
}

struct file *files_known(const char *path, enum layer layer) {
  section_lock(&lock);
  struct file *file = *slot_for(path, layer);
  section_unlock(&lock);
  return file;
}

bool file_has_moved_data(const struct file *file) {
  const struct traffic *reads = &file->counters.traffic[READING];
  const struct traffic *writes = &file->counters.traffic[WRITING];
  return reads->system_calls + reads->system_failures + writes->system_calls +
             writes->system_failures >
         0;
}

bool file_is_empty(const struct file *file) {
  return file->layer != LAYER_MPIIO && file->counters.opens == 0 &&
         file->counters.open_failures == 0 && !file_has_moved_data(file);
}

struct file *files_at(int index) {
  return index < file_count + direct_count ? files[index] : NULL;
}

int64_t files_dropped(void) { return dropped; }

void files_note_dropped(void) {
  section_lock(&lock);
  dropped++;
  section_unlock(&lock);
}

static size_t slot_of(MPI_File handle) {
  return ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 40 & (HANDLES_MAX - 1);
}

/* The lock is held. The slot that holds the handle, or the empty one where the search ends, or
 * NULL. */
static struct opened *probe(MPI_File handle) {
  size_t at = slot_of(handle);
  for (int tries = 0; tries < HANDLES_MAX; tries++, at = (at + 1) & (HANDLES_MAX - 1))
    if (handles[at].file == NULL || handles[at].handle == handle)
      return &handles[at];
  return NULL;
}

void handles_add(MPI_File handle, struct file *file, bool tells_hints) {
  section_lock(&lock);
  struct opened *slot = probe(handle);
  if (slot != NULL)
    *slot = (struct opened){handle, file, tells_hints};
  else
    dropped++;
  section_unlock(&lock);
}

struct opened handles_find(MPI_File handle) {
  section_lock(&lock);
  struct opened *slot = probe(handle);
  struct opened found = slot != NULL ? *slot : (struct opened){.file = NULL};
  section_unlock(&lock);
  return found;
}

void handles_remove(MPI_File handle) {
  section_lock(&lock);
  struct opened *slot = probe(handle);
  if (slot != NULL && slot->file != NULL) {
    slot->file = NULL;
    /* What was stored further on because this slot was taken moves up. */
    for (size_t at = ((size_t)(slot - handles) + 1) & (HANDLES_MAX - 1); handles[at].file != NULL;
         at = (at + 1) & (HANDLES_MAX - 1)) {
      struct opened moved = handles[at];
      handles[at].file = NULL;
      *probe(moved.handle) = moved;
    }
  }
  section_unlock(&lock);
}

struct file *descriptors_find(int descriptor) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return NULL;
  struct file *file = __atomic_load_n(&descriptors[descriptor], __ATOMIC_ACQUIRE);
  return file != NULL && !__atomic_load_n(&is_child, __ATOMIC_RELAXED) ? file : NULL;
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

static void in_child(void) { __atomic_store_n(&is_child, true, __ATOMIC_RELAXED); }

/* What the parent has opened is not the child's. */
static void forget(void) {
  pthread_mutex_init(&lock, NULL);
  memset(slots, 0, sizeof slots);
  memset(handles, 0, sizeof handles);
  memset(descriptors, 0, sizeof descriptors);
  positions_forget();
  file_count = direct_count = 0;
  dropped = 0;
}

void files_start(void) {
  static bool is_hooked;
  if (!is_hooked)
    pthread_atfork(NULL, NULL, in_child);
  is_hooked = true;
  if (is_child)
    forget();
  is_child = false;
  process = getpid();
}

static void restart_heat(void) {
  for (int i = 0; i < file_count + direct_count; i++) {
    file_lock(files[i]);
    heat_restart(&files[i]->asked_heat);
    heat_restart(&files[i]->system_heat);
    file_unlock(files[i]);
  }
}

void files_observe(double from_s) {
  origin_s = from_s;
  restart_heat();
  __atomic_store_n(&is_observed, true, __ATOMIC_RELEASE);
}

void files_stop(void) { __atomic_store_n(&is_observed, false, __ATOMIC_RELEASE); }

bool files_are_observed(void) {
  return __atomic_load_n(&is_observed, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&is_child, __ATOMIC_RELAXED);
}

double files_origin_s(void) { return origin_s; }

pid_t files_process(void) { return process; }
