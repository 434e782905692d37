#include "distribution.h"

#include "harness/message.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  EQUAL_BLOCK_BYTES = 665600, /* what the published generator of block sizes writes */
  LINE_BYTES_MAX = 1 << 20,
  COMPARTMENTS_MIN = 100,
  COMPARTMENTS_MAX = 350
};

/* A small mixing function in place of rand(): a cell has the same size on every machine. */
static uint32_t scramble(uint32_t value) {
  value = (value ^ (value >> 16)) * UINT32_C(0x21f0aaad);
  value = (value ^ (value >> 15)) * UINT32_C(0x735a2d97);
  return value ^ (value >> 15);
}

/* 100 plus two random parts, up to 511 and up to 127, but never more than 350. */
static int compartments_of(int cell) {
  uint32_t first = scramble((uint32_t)(2 * cell)), second = scramble((uint32_t)(2 * cell + 1));
  int compartments = COMPARTMENTS_MIN + (int)(first % 512) + (int)(second % 128);
  return compartments < COMPARTMENTS_MAX ? compartments : COMPARTMENTS_MAX;
}

/* Cells are numbered from 1 and dealt round-robin. */
static int64_t random_block(const struct options *options, int rank, int ranks) {
  int64_t compartments = 0;
  for (int64_t cell = 1 + rank; cell <= options->cells; cell += ranks)
    compartments += compartments_of((int)cell);
  return compartments * options->sim_steps * (int64_t)sizeof(float);
}

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

/* The chunks of a line of which the rank has been read; NULL, or what was expected instead. */
static const char *join_chunks(const char *text, int64_t *block) {
  int64_t count, size;
  if (!next_number(&text, &count) || count < 1)
    return "the number of chunks and one more";
  *block = 0;
  for (int64_t chunk = 0; chunk < count - 1; chunk++) {
    if (!next_number(&text, &size))
      return "as many chunk sizes as the line says";
    *block += size;
    if (*block > INT_MAX)
      return "a block below 2 GiB, the limit of one MPI-IO call";
  }
  return *block % (int64_t)sizeof(float) == 0 ? NULL : "blocks of whole floats, 4 bytes each";
}

static bool parse_line(const char *path, int number, const char *text, int ranks, int64_t *blocks) {
  int64_t rank;
  const char *expected = "a rank, a comma and what follows it";
  if (next_number(&text, &rank)) {
    if (rank >= ranks || blocks[rank] >= 0)
      return true; /* the first line of a rank counts, others are for other runs */
    expected = join_chunks(text, &blocks[rank]);
  }
  if (expected != NULL)
    complain("%s:%d: expected %s\nhint: a line is 'rank,N+1,size,...,offset,...' with N chunks",
             path, number, expected);
  return expected == NULL;
}

static bool parse(const char *path, FILE *file, int ranks, int64_t *blocks) {
  static char line[LINE_BYTES_MAX];
  for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
    if (strchr(line, '\n') == NULL && !feof(file)) {
      complain("%s:%d: line longer than %d bytes", path, number, LINE_BYTES_MAX - 2);
      return false;
    }
    if (line[strspn(line, " \t\r\n")] != '\0' && !parse_line(path, number, line, ranks, blocks))
      return false;
  }
  if (ferror(file)) {
    complain("%s: %s", path, strerror(errno));
    return false;
  }
  for (int rank = 0; rank < ranks; rank++)
    if (blocks[rank] < 0) {
      complain("%s: no line for rank %d\nhint: %d ranks need lines that begin with 0, to %d,", path,
               rank, ranks, ranks - 1);
      return false;
    }
  return true;
}

static bool read_blocks(const char *path, int ranks, int64_t *blocks) {
  for (int rank = 0; rank < ranks; rank++)
    blocks[rank] = -1;
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    complain("%s: %s", path, strerror(errno));
    return false;
  }
  bool good = parse(path, file, ranks, blocks);
  fclose(file);
  return good;
}

/* Rank 0 reads the file and deals out the blocks. */
static bool block_from_file(const struct options *options, MPI_Comm comm, int64_t *block) {
  int rank, ranks, good = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  int64_t *blocks = NULL;
  if (rank == 0) {
    blocks = malloc((size_t)ranks * sizeof *blocks);
    good = blocks != NULL && read_blocks(options->file, ranks, blocks);
    for (int i = 0; options->invert && good && i < ranks / 2; i++) {
      int64_t other = blocks[ranks - 1 - i];
      blocks[ranks - 1 - i] = blocks[i];
      blocks[i] = other;
    }
  }
  MPI_Bcast(&good, 1, MPI_INT, 0, comm);
  if (good)
    MPI_Scatter(blocks, 1, MPI_INT64_T, block, 1, MPI_INT64_T, 0, comm);
  free(blocks);
  return good;
}

static bool can_be_written(MPI_Comm comm, int rank, int64_t block) {
  int64_t mine[2] = {block, -block}, extremes[2];
  MPI_Allreduce(mine, extremes, 2, MPI_INT64_T, MPI_MAX, comm);
  if (extremes[1] == 0)
    complain_once(rank, "a rank has nothing to write\n"
                        "hint: take at least as many cells as ranks (--numcells), or a file of "
                        "block sizes above 0");
  else if (extremes[0] > INT_MAX)
    complain_once(rank, "a block is larger than 2 GiB, the limit of one MPI-IO call\n"
                        "hint: take fewer cells or simulation steps, or more ranks");
  return extremes[1] != 0 && extremes[0] <= INT_MAX;
}

bool distribution_make(const struct options *options, MPI_Comm comm,
                       struct distribution_of_rank *distribution) {
  int rank, ranks;
  int64_t block = EQUAL_BLOCK_BYTES, end;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (options->distribution == RND1B)
    block = random_block(options, rank, ranks);
  else if (options->file != NULL && !block_from_file(options, comm, &block))
    return false;
  if (!can_be_written(comm, rank, block))
    return false;
  MPI_Scan(&block, &end, 1, MPI_INT64_T, MPI_SUM, comm);
  distribution->block_bytes = block;
  distribution->offset_bytes = end - block;
  MPI_Bcast(&end, 1, MPI_INT64_T, ranks - 1, comm);
  distribution->step_bytes = end;
  return true;
}
