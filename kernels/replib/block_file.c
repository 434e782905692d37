#include "block_file.h"

#include "harness/message.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES_MAX = 1 << 20, FLOAT_BYTES = sizeof(float) };

/* Reads one whole number, 0 or more, and moves *text behind it and a comma. */
static bool next_number(const char **text, int64_t *number) {
  char *end = NULL;
  errno = 0;
  long long value = strtoll(*text, &end, 10);
  while (isspace((unsigned char)*end))
    end++;
  if (end == *text || errno != 0 || value < 0 || (*end != ',' && *end != '\0'))
    return false;
  *text = *end == ',' ? end + 1 : end;
  *number = value;
  return true;
}

static const char *take_sizes(const char **text, struct chunks_of_rank *block) {
  int64_t sum = 0;
  for (int64_t i = 0; i < block->count; i++) {
    if (!next_number(text, &block->chunks[i].bytes))
      return "as many chunk sizes as the line says";
    if (block->chunks[i].bytes > INT_MAX - sum)
      return "a block below 2 GiB, the limit of one MPI-IO call";
    sum += block->chunks[i].bytes;
  }
  return sum % FLOAT_BYTES == 0 ? NULL : "blocks of whole floats, 4 bytes each";
}

/* MPI wants the pieces of a file view in ascending order. */
static const char *take_offsets(const char **text, struct chunks_of_rank *block) {
  int64_t end = 0;
  for (int64_t i = 0; i < block->count; i++) {
    struct chunk *chunk = &block->chunks[i];
    if (!next_number(text, &chunk->offset_bytes))
      return "as many chunk offsets as the line says";
    if (chunk->bytes % FLOAT_BYTES != 0 || chunk->offset_bytes % FLOAT_BYTES != 0)
      return "chunks of whole floats, 4 bytes each, at such offsets";
    if (chunk->offset_bytes < end)
      return "chunks in ascending order, none in another";
    end = chunk->offset_bytes + chunk->bytes;
  }
  return NULL;
}

/* What follows the rank in its line; NULL, or what was expected instead. */
static const char *take_chunks(const char *text, bool placed, struct chunks_of_rank *block) {
  int64_t count;
  if (!next_number(&text, &count) || count < 1)
    return "the number of chunks and one more";
  if (count > LINE_BYTES_MAX)
    return "as many chunk sizes as the line says";
  block->count = count - 1;
  block->chunks = calloc((size_t)count, sizeof *block->chunks);
  if (block->chunks == NULL)
    abort(); /* no more than the line itself takes several times over */
  const char *expected = take_sizes(&text, block);
  return expected == NULL && placed ? take_offsets(&text, block) : expected;
}

static bool parse_line(const char *path, int number, const char *text, int ranks, bool placed,
                       struct chunks_of_rank *blocks) {
  int64_t rank;
  const char *expected = "a rank, a comma and what follows it";
  if (next_number(&text, &rank)) {
    if (rank >= ranks || blocks[rank].count >= 0)
      return true; /* the first line of a rank counts, others are for other runs */
    expected = take_chunks(text, placed, &blocks[rank]);
  }
  if (expected != NULL)
    complain("%s:%d: expected %s\nhint: a line is 'rank,N+1,size,...,offset,...' with N chunks",
             path, number, expected);
  return expected == NULL;
}

static bool parse(const char *path, FILE *file, int ranks, bool placed,
                  struct chunks_of_rank *blocks) {
  static char line[LINE_BYTES_MAX];
  for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
    if (strchr(line, '\n') == NULL && !feof(file)) {
      complain("%s:%d: line longer than %d bytes", path, number, LINE_BYTES_MAX - 2);
      return false;
    }
    if (line[strspn(line, " \t\r\n")] != '\0' &&
        !parse_line(path, number, line, ranks, placed, blocks))
      return false;
  }
  if (ferror(file)) {
    complain("%s: %s", path, strerror(errno));
    return false;
  }
  for (int rank = 0; rank < ranks; rank++)
    if (blocks[rank].count < 0) {
      complain("%s: no line for rank %d\nhint: %d ranks need lines that begin with 0, to %d,", path,
               rank, ranks, ranks - 1);
      return false;
    }
  return true;
}

static int by_offset(const void *left, const void *right) {
  const struct chunk *one = left, *other = right;
  if (one->offset_bytes != other->offset_bytes)
    return one->offset_bytes < other->offset_bytes ? -1 : 1;
  return (one->bytes > other->bytes) - (one->bytes < other->bytes);
}

/* A step is as long as all chunks together, so a gap in it means that something is elsewhere
 * twice, or in the next step. */
static bool fill_a_step(const char *path, int ranks, const struct chunks_of_rank *blocks) {
  size_t count = 0, next = 0;
  int64_t end = 0;
  for (int rank = 0; rank < ranks; rank++)
    count += (size_t)blocks[rank].count;
  struct chunk *all = malloc((count > 0 ? count : 1) * sizeof *all);
  if (all == NULL) {
    complain("%s: not enough memory for %zu chunks", path, count);
    return false;
  }
  for (int rank = 0; rank < ranks; next += (size_t)blocks[rank++].count)
    if (blocks[rank].count > 0)
      memcpy(all + next, blocks[rank].chunks, (size_t)blocks[rank].count * sizeof *all);
  qsort(all, count, sizeof *all, by_offset);
  for (next = 0; next < count && all[next].offset_bytes == end; next++)
    end += all[next].bytes;
  if (next < count)
    complain("%s: the chunks of %d ranks leave byte %lld of a step to none or to two of them\n"
             "hint: fileNb needs offsets at which all chunks together fill a step",
             path, ranks, (long long)end);
  free(all);
  return next == count;
}

bool block_file_read(const char *path, int ranks, bool placed, struct chunks_of_rank *blocks) {
  for (int rank = 0; rank < ranks; rank++)
    blocks[rank] = (struct chunks_of_rank){.count = -1};
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    complain("%s: %s", path, strerror(errno));
    return false;
  }
  bool good = parse(path, file, ranks, placed, blocks);
  fclose(file);
  return good && (!placed || fill_a_step(path, ranks, blocks));
}

void block_file_free(int ranks, struct chunks_of_rank *blocks) {
  for (int rank = 0; rank < ranks; rank++)
    free(blocks[rank].chunks);
}
