/* Memory for what is read and written. What is written never changes, so all calls may use it at
 * once; nobody looks at what was read. */
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

/* The address that MPI gets for count elements of the type; NULL if there is no such memory. */
void *buffers_for(struct buffers *buffers, int direction, const struct built_type *type,
                  int64_t count);

/* So many plain bytes. */
void *buffers_bytes(struct buffers *buffers, int direction, size_t length);

/* The same content for the same place in any file. */
void content_fill(char *bytes, size_t length);

#endif
