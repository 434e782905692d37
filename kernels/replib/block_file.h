/* The file of block sizes: a line is "rank,N+1,size,...,offset,..." with N chunks, in bytes. */
#ifndef REPLIB_BLOCK_FILE_H
#define REPLIB_BLOCK_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct chunk {
  int64_t bytes;
  int64_t offset_bytes; /* from the beginning of a step; 0 without `placed` */
};

struct chunks_of_rank {
  struct chunk *chunks;
  int64_t count; /* negative: no line for this rank */
};

/* Reads the lines of ranks 0 to ranks - 1. With `placed`, the offsets too: the chunks of each rank
 * must ascend, and all together fill a step without a gap. False, with the reason printed, if the
 * file cannot be used; block_file_free is due all the same. */
bool block_file_read(const char *path, int ranks, bool placed, struct chunks_of_rank *blocks);
void block_file_free(int ranks, struct chunks_of_rank *blocks);

#endif
