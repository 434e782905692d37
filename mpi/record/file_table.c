#define _GNU_SOURCE
#include "record/file_table.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/reentrancy.h"
#include "base/signals.h"
#include "record/live_file.h"
#include "record/mpi_handles.h"
#include "record/observation.h"
#include "settings/settings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
  RECORDS_MAX = 2 * FILES_MAX + LAYERS,
  SLOTS = 8 * FILES_MAX,       /* a power of two */
  FAILURES_MAX = FILES_MAX / 2 /* records without MPI-IO, beyond which a failed open makes none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards records and dropped */
static struct file *files[RECORDS_MAX];
static struct file *slots[SLOTS]; /* by path and layer */
static int count;                 /* of records: the sum of the three */
static int mpi_count, direct_count, joint_count;
static int64_t dropped, joined;

/* In the live file if there is one. Tallies are too large for the stack of some signal handlers. */
static struct tally *new_tally(const char *path, enum layer layer) {
  static struct tally fresh; /* the lock of the table is held */
  fresh = tally_of_layer(layer);
  struct tally *tally = live_add(&fresh, path);
  if (tally == NULL && (tally = arena_alloc(sizeof *tally)) != NULL)
    *tally = fresh;
  return tally;
}

static struct file *new_file(const char *path, enum layer layer) {
  struct file *file = arena_alloc(sizeof *file);
  char *kept = arena_copy(path);
  if (file == NULL || kept == NULL || (file->tally = new_tally(kept, layer)) == NULL)
    return NULL;
  pthread_mutex_init(&file->lock, NULL);
  file->path = kept;
  file->layer = layer;
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
static struct file *find_or_make(const char *path, enum layer layer, int *count_of_kind, int max) {
  struct file **slot = slot_for(path, layer);
  if (*slot != NULL || *count_of_kind >= max)
    return *slot;
  struct file *file = new_file(path, layer);
  if (file == NULL)
    return NULL;
  files[count++] = *slot = file;
  ++*count_of_kind;
  return file;
}

/* The lock is held. */
static struct file *joint_file(enum layer layer) {
  struct file *file = find_or_make(OTHER_FILES, layer, &joint_count, LAYERS);
  if (file != NULL)
    file->is_joint = true;
  return file;
}

/* The lock is held. */
static void note_lost(int64_t *counter) {
  ++*counter;
  live_set_lost(dropped, joined);
}

struct file *files_for_name(const char *name) {
  char path[PATH_BYTES_MAX];
  name = path_without_prefix(name);
  bool is_known = path_absolute(AT_FDCWD, name, path);
  char *kept = strdup(name);
  critical_lock(&lock);
  struct file *file =
      is_known && kept != NULL ? find_or_make(path, LAYER_MPIIO, &mpi_count, FILES_MAX) : NULL;
  if (file == NULL)
    note_lost(&dropped);
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
  struct file *file = find_or_make(path, layer, &direct_count, FILES_MAX);
  if (file == NULL) {
    file = joint_file(layer);
    note_lost(file != NULL ? &joined : &dropped);
  }
  critical_unlock(&lock);
  return file;
}

struct file *files_for_failure(const char *path, enum layer layer) {
  critical_lock(&lock);
  struct file *file = find_or_make(path, layer, &direct_count, FAILURES_MAX);
  if (file == NULL)
    file = joint_file(layer);
  critical_unlock(&lock);
  return file;
}

struct file *files_for_others(enum layer layer) {
  critical_lock(&lock);
  struct file *file = joint_file(layer);
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
  return index < count ? files[index] : NULL;
}

int64_t files_dropped(void) { return dropped + handles_dropped(); }

int64_t files_joined(void) { return joined; }

void files_note_dropped(void) {
  critical_lock(&lock);
  note_lost(&dropped);
  critical_unlock(&lock);
}

/* Counts that waited go along; a single character that is noted at this very moment may not. */
static void move_to_live_file(struct file *file) {
  file_lock(file);
  struct tally *before = file->tally, *live = live_add(before, file->path);
  if (live != NULL)
    file->tally = live;
  file_unlock(file);
}

static void move_all_to_live(void) {
  critical_lock(&lock);
  if (live_make())
    for (int i = 0; i < count; i++)
      move_to_live_file(files[i]);
  live_set_lost(dropped, joined);
  critical_unlock(&lock);
}

void files_move_to_live(void) { WITHOUT_SIGNALS(move_all_to_live()); }

/* What the parent has counted stays the parent's. False: there is no memory. */
static bool start_afresh(struct file *file) {
  struct tally *parents = file->tally, *tally = new_tally(file->path, file->layer);
  pthread_mutex_init(&file->lock, NULL);
  if (tally == NULL)
    return false;
  memcpy(tally->next_offset, parents->next_offset, sizeof tally->next_offset);
  memcpy(tally->opened_by, parents->opened_by, sizeof tally->opened_by);
  tally->stripe_bytes = parents->stripe_bytes;
  tally->stripe_count = parents->stripe_count;
  tally->alignment_bytes = parents->alignment_bytes;
  file->tally = tally;
  return true;
}

/* In a child made by fork: it has its parent's files open, and counts what it does with them itself
 * from here on. A lock may be held by a thread that it lacks. */
static bool resume_in_child(void) {
  pthread_mutex_init(&lock, NULL);
  arena_resume_in_child();
  handles_forget();
  live_forget();
  dropped = joined = 0;
  settings.is_active = false; /* the rank of MPI is its parent */
  settings.ranks = 0;
  double began_s = clock_s(), began_unix_s = 1e-6 * (double)unix_us();
  observation_set_origin(began_s, began_unix_s);
  live_set_origin(began_s, began_unix_s);
  for (int i = 0; i < count; i++)
    if (!start_afresh(files[i]))
      return false;
  return true;
}

void files_start(void) { observation_begin(resume_in_child); }

static void restart_heat(void) {
  for (int i = 0; i < count; i++) {
    file_lock(files[i]);
    heat_restart(&files[i]->tally->asked_heat);
    heat_restart(&files[i]->tally->system_heat);
    file_unlock(files[i]);
  }
}

void files_observe(double origin_s, double started_unix_s) {
  observation_set_origin(origin_s, started_unix_s);
  live_set_origin(origin_s, started_unix_s);
  restart_heat();
  observation_start();
}
