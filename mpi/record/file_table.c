#define _GNU_SOURCE
#include "record/file_table.h"

#include "base/arena.h"
#include "base/path.h"
#include "base/reentrancy.h"
#include "record/descriptors.h"
#include "record/mpi_handles.h"
#include "record/observation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
  RECORDS_MAX = 2 * FILES_MAX,
  SLOTS = 4 * RECORDS_MAX,     /* a power of two */
  FAILURES_MAX = FILES_MAX / 2 /* records without MPI-IO, beyond which a failed open makes none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards records and dropped */
static struct file *files[RECORDS_MAX];
static struct file *slots[SLOTS]; /* by path and layer */
static int file_count, direct_count;
static int64_t dropped;

static struct file *new_file(const char *path, enum layer layer) {
  struct file *file = arena_alloc(sizeof *file);
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
  critical_lock(&lock);
  struct file *file = is_known && kept != NULL ? find_or_make(path, LAYER_MPIIO) : NULL;
  dropped += file == NULL;
  critical_unlock(&lock);
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
  critical_lock(&lock);
  struct file *file = find_or_make(path, layer);
  dropped += file == NULL;
  critical_unlock(&lock);
  return file;
}

struct file *files_for_failure(const char *path, enum layer layer) {
  critical_lock(&lock);
  bool has_room = direct_count < FAILURES_MAX;
  struct file *file = has_room ? find_or_make(path, layer) : *slot_for(path, layer);
  critical_unlock(&lock);
  return file;
}

struct file *files_known(const char *path, enum layer layer) {
  critical_lock(&lock);
  struct file *file = *slot_for(path, layer);
  critical_unlock(&lock);
  return file;
}

struct file *files_at(int index) {
  return index < file_count + direct_count ? files[index] : NULL;
}

int64_t files_dropped(void) { return dropped + handles_dropped(); }

void files_note_dropped(void) {
  critical_lock(&lock);
  dropped++;
  critical_unlock(&lock);
}

/* What the parent has opened is not the child's. */
static void forget(void) {
  pthread_mutex_init(&lock, NULL);
  memset(slots, 0, sizeof slots);
  handles_forget();
  descriptors_forget();
  file_count = direct_count = 0;
  dropped = 0;
}

void files_start(void) {
  if (observation_is_lost())
    forget();
  observation_begin();
}

static void restart_heat(void) {
  for (int i = 0; i < file_count + direct_count; i++) {
    file_lock(files[i]);
    heat_restart(&files[i]->asked_heat);
    heat_restart(&files[i]->system_heat);
    file_unlock(files[i]);
  }
}

void files_observe(double origin_s) {
  observation_set_origin(origin_s);
  restart_heat();
  observation_start();
}
