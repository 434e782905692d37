#define _GNU_SOURCE
#include "files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards files, handles and dropped */
static struct file *files[FILES_MAX];
static int file_count;
static struct opened handles[HANDLES_MAX];
static int64_t dropped;
static struct file *descriptors[DESCRIPTORS_MAX]; /* atomic */
static bool is_child;                             /* atomic */
static pid_t process;

static __thread volatile bool is_in_section __attribute__((tls_model("initial-exec")));

void file_lock(struct file *file) {
  is_in_section = true;
  pthread_mutex_lock(&file->lock);
}

void file_unlock(struct file *file) {
  pthread_mutex_unlock(&file->lock);
  is_in_section = false;
}

bool files_are_locked_here(void) { return is_in_section; }

/* ROMIO takes a driver's name before the path. A single letter or a '/' before the ':' is none. */
static const char *without_prefix(const char *name) {
  const char *colon = strchr(name, ':');
  if (colon == NULL || colon - name < 2 || memchr(name, '/', (size_t)(colon - name)) != NULL)
    return name;
  static const char *const drivers[] = {"ufs", "nfs", "lustre", "gpfs", "panfs", "pvfs2", "testfs"};
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
    if (strncmp(name, drivers[i], (size_t)(colon - name)) == 0 && drivers[i][colon - name] == '\0')
      return colon + 1;
  return name;
}

static char *absolute(const char *name) {
  char directory[PATH_MAX];
  struct text path = {0};
  if (name[0] != '/' && getcwd(directory, sizeof directory) != NULL)
    text_add(&path, "%s/", strcmp(directory, "/") == 0 ? "" : directory);
  while (name[0] == '.' && name[1] == '/')
    name += 2;
  text_add_bytes(&path, name, strlen(name));
  return path.bytes;
}

static struct file *new_file(char *path) {
  struct file *file = calloc(1, sizeof *file);
  if (file == NULL)
    return NULL;
  pthread_mutex_init(&file->lock, NULL);
  file->path = path;
  file->next_offset[READING] = file->next_offset[WRITING] = -1;
  file->rmw_retry_offset = -1;
  return file;
}

/* The lock is held. Takes over path. */
static struct file *find_or_make(char *path) {
  for (int i = 0; i < file_count; i++)
    if (strcmp(files[i]->path, path) == 0) {
      free(path);
      return files[i];
    }
  struct file *file = file_count < FILES_MAX ? new_file(path) : NULL;
  if (file != NULL)
    files[file_count++] = file;
  else
    free(path);
  return file;
}

struct file *files_for_name(const char *name) {
  name = without_prefix(name);
  char *path = absolute(name), *kept = strdup(name);
  pthread_mutex_lock(&lock);
  struct file *file = path != NULL && kept != NULL ? find_or_make(path) : NULL;
  if (file == NULL)
    dropped++;
  pthread_mutex_unlock(&lock);
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

struct file *files_at(int index) {
  return index < file_count ? files[index] : NULL;
}

int64_t files_dropped(void) { return dropped; }

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
  pthread_mutex_lock(&lock);
  struct opened *slot = probe(handle);
  if (slot != NULL)
    *slot = (struct opened){handle, file, tells_hints};
  else
    dropped++;
  pthread_mutex_unlock(&lock);
}

struct opened handles_find(MPI_File handle) {
  pthread_mutex_lock(&lock);
  struct opened *slot = probe(handle);
  struct opened found = slot != NULL ? *slot : (struct opened){.file = NULL};
  pthread_mutex_unlock(&lock);
  return found;
}

void handles_remove(MPI_File handle) {
  pthread_mutex_lock(&lock);
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
  pthread_mutex_unlock(&lock);
}

struct file *descriptors_find(int descriptor) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return NULL;
  struct file *file = __atomic_load_n(&descriptors[descriptor], __ATOMIC_ACQUIRE);
  return file != NULL && !__atomic_load_n(&is_child, __ATOMIC_RELAXED) ? file : NULL;
}

void descriptors_set(int descriptor, struct file *file) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS_MAX)
    __atomic_store_n(&descriptors[descriptor], file, __ATOMIC_RELEASE);
}

static void in_child(void) { __atomic_store_n(&is_child, true, __ATOMIC_RELAXED); }

void files_start(void) {
  process = getpid();
  pthread_atfork(NULL, NULL, in_child);
}

pid_t files_process(void) { return process; }
