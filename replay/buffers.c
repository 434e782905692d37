#define _GNU_SOURCE
#include "buffers.h"

#include <sys/mman.h>

/* A type of absolute addresses may span from the heap to the stack. Such memory is taken but not
 * filled: pages that nobody writes cost nothing. */
enum { FILLED_BYTES_MAX = 1 << 30, BYTES_MIN = 1 << 20 };

void content_fill(char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++)
    bytes[i] = (char)(i * 131 + (i >> 8) * 17 + (i >> 16) + 1);
}

/* Smaller ones stay: operations under way may use them. Doubling bounds what they hold. */
static bool grow(struct arena *arena, int direction, size_t needed) {
  size_t length = arena->length > 0 ? arena->length : BYTES_MIN;
  while (length < needed && length <= SIZE_MAX / 4)
    length *= 2;
  char *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED)
    return false;
  if (direction == WRITING)
    content_fill(bytes, needed < FILLED_BYTES_MAX ? length : BYTES_MIN);
  *arena = (struct arena){bytes, length};
  return true;
}

void *buffers_bytes(struct buffers *buffers, int direction, size_t length) {
  struct arena *arena = &buffers->arenas[direction];
  if (length > arena->length && !grow(arena, direction, length))
    return NULL;
  return arena->bytes != NULL || grow(arena, direction, BYTES_MIN) ? arena->bytes : NULL;
}

void *buffers_for(struct buffers *buffers, int direction, const struct built_type *type,
                  int64_t count) {
  int64_t steps = count > 0 ? (count - 1) * (int64_t)type->extent : 0;
  int64_t first = (int64_t)type->true_lower + (steps < 0 ? steps : 0);
  int64_t length = (int64_t)type->true_extent + (steps < 0 ? -steps : steps);
  char *bytes = buffers_bytes(buffers, direction, count > 0 ? (size_t)length : 0);
  return bytes != NULL ? (void *)((uintptr_t)bytes - (uintptr_t)first) : NULL;
}
