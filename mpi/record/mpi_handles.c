#include "record/mpi_handles.h"

#include "base/reentrancy.h"

#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mpi_handle handles[HANDLES_MAX];
static int64_t dropped;

static size_t slot_of(MPI_File handle) {
  return ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 40 & (HANDLES_MAX - 1);
}

/* The lock is held. The slot that holds the handle, or the empty one where the search ends, or
 * NULL. */
static struct mpi_handle *probe(MPI_File handle) {
  size_t at = slot_of(handle);
  for (int tries = 0; tries < HANDLES_MAX; tries++, at = (at + 1) & (HANDLES_MAX - 1))
    if (handles[at].file == NULL || handles[at].handle == handle)
      return &handles[at];
  return NULL;
}

void handles_add(MPI_File handle, struct file *file, bool records_hints) {
  critical_lock(&lock);
  struct mpi_handle *slot = probe(handle);
  if (slot != NULL)
    *slot = (struct mpi_handle){handle, file, records_hints, false};
  else
    dropped++;
  critical_unlock(&lock);
}

struct mpi_handle handles_find(MPI_File handle) {
  critical_lock(&lock);
  struct mpi_handle *slot = probe(handle);
  struct mpi_handle found = slot != NULL ? *slot : (struct mpi_handle){.file = NULL};
  critical_unlock(&lock);
  return found;
}

bool handles_set_atomic(MPI_File handle, bool is_atomic) {
  critical_lock(&lock);
  struct mpi_handle *slot = probe(handle);
  bool was_atomic = is_atomic;
  if (slot != NULL && slot->file != NULL) {
    was_atomic = slot->is_atomic;
    slot->is_atomic = is_atomic;
  }
  critical_unlock(&lock);
  return was_atomic;
}

void handles_remove(MPI_File handle) {
  critical_lock(&lock);
  struct mpi_handle *slot = probe(handle);
  if (slot != NULL && slot->file != NULL) {
    slot->file = NULL;
    /* What was stored further on because this slot was taken moves up. */
    for (size_t at = ((size_t)(slot - handles) + 1) & (HANDLES_MAX - 1); handles[at].file != NULL;
         at = (at + 1) & (HANDLES_MAX - 1)) {
      struct mpi_handle moved = handles[at];
      handles[at].file = NULL;
      *probe(moved.handle) = moved;
    }
  }
  critical_unlock(&lock);
}

int64_t handles_dropped(void) { return dropped; }

void handles_forget(void) {
  pthread_mutex_init(&lock, NULL);
  memset(handles, 0, sizeof handles);
  dropped = 0;
}
