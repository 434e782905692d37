#define _GNU_SOURCE
#include "base/arena.h"

#include "base/reentrancy.h"

#include <string.h>
#include <sys/mman.h>

enum { CHUNK_BYTES = 1 << 20, ALIGNMENT_BYTES = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *chunk;
static size_t chunk_left_bytes;

static void *map(size_t bytes) {
  void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return made != MAP_FAILED ? made : NULL;
}

/* The lock is held. */
static void *take(size_t bytes) {
  if (bytes > CHUNK_BYTES)
    return map(bytes);
  if (bytes > chunk_left_bytes) {
    char *fresh = map(CHUNK_BYTES);
    if (fresh == NULL)
      return NULL;
    chunk = fresh;
    chunk_left_bytes = CHUNK_BYTES;
  }
  void *taken = chunk;
  chunk += bytes;
  chunk_left_bytes -= bytes;
  return taken;
}

void *arena_alloc(size_t bytes) {
  bytes = (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  critical_lock(&lock);
  void *taken = take(bytes);
  critical_unlock(&lock);
  return taken;
}

char *arena_copy(const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = arena_alloc(bytes);
  return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void arena_resume_in_child(void) { pthread_mutex_init(&lock, NULL); }
