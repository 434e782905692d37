/* The phases of IO500, and what all of them share while they run.
 *
 * Sizes, names and order are those of the IO500 benchmark, its programs ior and mdtest, and its
 * find. The files have the names that ior and mdtest give them. */
#ifndef IO500_PHASE_H
#define IO500_PHASE_H

#include "harness/report.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  EASY_TRANSFER_BYTES = 2 << 20,
  HARD_TRANSFER_BYTES = 47008,
  RANDOM_TRANSFER_BYTES = 4096,
  ITEM_BYTES = 3901,
  PATH_BYTES_MAX = 4096
};

struct options;

/* One phase on its way. */
struct benchmark {
  MPI_Comm comm;
  int rank, ranks;
  const struct options *options;
  int partner; /* the rank whose files this one reads */
  struct report report;
  int64_t operations; /* of each rank; the limit of those who read what this phase wrote */
  int64_t total;      /* operations of all ranks together; of find: names that it saw */
  double wall_s;      /* from the moment when all ranks begin until the last one is done */
  bool stonewalled;
  double stonewall_s;           /* when the last rank stopped */
  int64_t stonewall_operations; /* of all ranks together, when they stopped */
  int64_t found;                /* by find, of all ranks together */
};

struct phase {
  const char *name;
  char mode;          /* 'w' or 'r', as in the report */
  int transfer_bytes; /* of one operation; of a file, where an operation is about one */
  bool in_own_file;   /* every rank has a file or a directory of its own */
  const char *folder; /* below the directory of the benchmark */
  bool (*run)(struct benchmark *benchmark);
};

/* NULL if there is no phase of this name. */
const struct phase *phase_named(const char *name);

#endif
