/* Memory for what is read and written. What is written never changes, so every call may use it at
 * once; what was read is looked at by nobody. */
#ifndef FOREBAY_REPLAY_BUFFERS_H
#define FOREBAY_REPLAY_BUFFERS_H

#include "types.h"

struct arena {
  char *bytes;
  size_t length;
};

struct buffers {
  struct arena arenas[2]; /* by direction: reading, writing */
};

/* The address to hand to MPI for count elements of the type; NULL if there is no such memory. */
void *buffers_for(struct buffers *buffers, int direction, const struct built *type, int64_t count);

/* So many plain bytes. */
void *buffers_bytes(struct buffers *buffers, int direction, size_t length);

/* The same content for the same place in any file. */
void content_fill(char *bytes, size_t length);

#endif
