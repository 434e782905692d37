#include "distribution.h"

#include "block_file.h"
#include "harness/attempt.h"
#include "harness/message.h"
#include "scramble.h"

#include <limits.h>
#include <stdlib.h>

enum {
  EQUAL_BLOCK_BYTES = 665600, /* what the published generator of block sizes writes */
  COMPARTMENTS_MIN = 100,
  COMPARTMENTS_MAX = 350,
  FLOAT_BYTES = sizeof(float)
};

/* 100 plus two random parts, up to 511 and up to 127, but never more than 350. */
static int compartments_of(int cell) {
  uint32_t first = scramble((uint32_t)(2 * cell)), second = scramble((uint32_t)(2 * cell + 1));
  int compartments = COMPARTMENTS_MIN + (int)(first % 512) + (int)(second % 128);
  return compartments < COMPARTMENTS_MAX ? compartments : COMPARTMENTS_MAX;
}

/* Cells are numbered from 1 and dealt round-robin. */
static int64_t random_block_values(const struct options *options, int rank, int ranks) {
  int64_t compartments = 0;
  for (int64_t cell = 1 + rank; cell <= options->cells; cell += ranks)
    compartments += compartments_of((int)cell);
  return compartments * options->sim_steps;
}

static void invert(int ranks, struct chunks_of_rank *blocks) {
  for (int i = 0; i < ranks / 2; i++) {
    struct chunks_of_rank other = blocks[ranks - 1 - i];
    blocks[ranks - 1 - i] = blocks[i];
    blocks[i] = other;
  }
}

/* From rank 0, which has them all, to each rank its own. */
static void send_chunks(MPI_Comm comm, int rank, int ranks, const struct chunks_of_rank *blocks,
                        struct chunks_of_rank *mine) {
  if (rank != 0) {
    MPI_Recv(&mine->count, 1, MPI_INT64_T, 0, 0, comm, MPI_STATUS_IGNORE);
    mine->chunks = malloc((size_t)(mine->count + 1) * sizeof *mine->chunks);
    if (mine->chunks == NULL)
      abort(); /* no more than a line of the file */
    MPI_Recv(mine->chunks, (int)mine->count * 2, MPI_INT64_T, 0, 0, comm, MPI_STATUS_IGNORE);
    return;
  }
  for (int other = 1; other < ranks; other++) {
    MPI_Send(&blocks[other].count, 1, MPI_INT64_T, other, 0, comm);
    MPI_Send(blocks[other].chunks, (int)blocks[other].count * 2, MPI_INT64_T, other, 0, comm);
  }
}

/* Rank 0 reads the file and deals out the lines. *mine is to be freed by the caller. */
static bool chunks_from_file(const struct options *options, MPI_Comm comm,
                             struct chunks_of_rank *mine) {
  int rank, ranks, good = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  struct chunks_of_rank *blocks = NULL;
  if (rank == 0) {
    blocks = calloc((size_t)ranks, sizeof *blocks);
    if (blocks == NULL)
      abort(); /* some bytes for each rank: nothing sensible is left to do */
    good = block_file_read(options->file, ranks, options->distribution == FILENB, blocks);
    if (options->invert)
      invert(ranks, blocks);
  }
  MPI_Bcast(&good, 1, MPI_INT, 0, comm);
  if (good)
    send_chunks(comm, rank, ranks, blocks, mine);
  if (rank == 0) {
    *mine = blocks[0];
    blocks[0].chunks = NULL;
    block_file_free(ranks, blocks);
    free(blocks);
  }
  return good;
}

static bool check_value_counts(MPI_Comm comm, int rank, int64_t values) {
  int64_t mine[2] = {values, -values}, extremes[2];
  MPI_Allreduce(mine, extremes, 2, MPI_INT64_T, MPI_MAX, comm);
  if (extremes[1] == 0)
    complain_once(rank, "a rank has nothing to write\n"
                        "hint: take at least as many cells as ranks (--numcells), or a file of "
                        "block sizes above 0");
  else if (extremes[0] > INT_MAX / FLOAT_BYTES)
    complain_once(rank, "a block is larger than 2 GiB, the limit of one MPI-IO call\n"
                        "hint: take fewer cells or simulation steps, or more ranks");
  return extremes[1] != 0 && extremes[0] <= INT_MAX / FLOAT_BYTES;
}

static bool check_report_size(const struct options *options, int rank, int64_t step_values) {
  bool fits = step_values <= INT64_MAX / FLOAT_BYTES / options->rep_steps;
  if (!fits)
    complain_once(rank, "the report is larger than 2^63 bytes\nhint: take fewer --rep-steps");
  return fits;
}

/* What the rank writes in a step as `rows` runs, each one stretch of a row of all ranks. */
static void place_in_rows(MPI_Comm comm, int64_t rows, struct distribution_of_rank *distribution) {
  int64_t mine = distribution->values / rows, end, all;
  MPI_Scan(&mine, &end, 1, MPI_INT64_T, MPI_SUM, comm);
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, comm);
  distribution->step_values = rows * all;
  distribution->run_count = rows;
  for (int64_t row = 0; row < rows && distribution->runs != NULL; row++)
    distribution->runs[row] = (struct run){.first = row * all + end - mine, .count = mine};
}

static void place_chunks(MPI_Comm comm, const struct chunks_of_rank *chunks,
                         struct distribution_of_rank *distribution) {
  MPI_Allreduce(&distribution->values, &distribution->step_values, 1, MPI_INT64_T, MPI_SUM, comm);
  for (int64_t i = 0; i < chunks->count && distribution->runs != NULL; i++)
    if (chunks->chunks[i].bytes > 0)
      distribution->runs[distribution->run_count++] =
          (struct run){.first = chunks->chunks[i].offset_bytes / FLOAT_BYTES,
                       .count = chunks->chunks[i].bytes / FLOAT_BYTES};
}

static int64_t values_in(const struct chunks_of_rank *chunks) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < chunks->count; i++)
    bytes += chunks->chunks[i].bytes;
  return bytes / FLOAT_BYTES;
}

/* In HDF5 a row is a simulation step. A rank's block is cut into as many; what remains of it is not
 * written, as in the published program. */
static int64_t rows_of(const struct options *options) {
  return options->backend == H5P ? options->sim_steps : 1;
}

static bool place(const struct options *options, MPI_Comm comm, const struct chunks_of_rank *chunks,
                  struct distribution_of_rank *distribution) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  int64_t rows = rows_of(options);
  distribution->values -= distribution->values % rows;
  if (!check_value_counts(comm, rank, distribution->values))
    return false;
  size_t runs = (size_t)(options->distribution == FILENB ? chunks->count : rows);
  distribution->runs = malloc(runs * sizeof *distribution->runs);
  if (options->distribution == FILENB)
    place_chunks(comm, chunks, distribution);
  else
    place_in_rows(comm, rows, distribution);
  return attempt_memory(comm, distribution->runs != NULL, "the places of a rank's values",
                        "take fewer simulation steps") &&
         check_report_size(options, rank, distribution->step_values);
}

bool distribution_make(const struct options *options, MPI_Comm comm,
                       struct distribution_of_rank *distribution) {
  int rank, ranks;
  struct chunks_of_rank chunks = {0};
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  *distribution = (struct distribution_of_rank){.values = EQUAL_BLOCK_BYTES / FLOAT_BYTES};
  if (options->file != NULL) {
    if (!chunks_from_file(options, comm, &chunks)) {
      free(chunks.chunks);
      return false;
    }
    distribution->values = values_in(&chunks);
  } else if (options->distribution == RND1B) {
    distribution->values = random_block_values(options, rank, ranks);
  }
  bool good = place(options, comm, &chunks, distribution);
  free(chunks.chunks);
  return good;
}

void distribution_free(struct distribution_of_rank *distribution) { free(distribution->runs); }
