/* The command line. */
#ifndef IO500_OPTIONS_H
#define IO500_OPTIONS_H

#include "phase.h"

#include "harness/command_line.h"

#include <stdbool.h>

enum { DIRECTORY_BYTES_MAX = 3072 };

struct options {
  const struct phase *phase;
  const char *directory;
  int limit;       /* operations of each rank, at most */
  int stonewall_s; /* after which the ranks agree on a number of operations; 0: the limit alone */
  int shift;       /* a rank reads what the rank after so many others wrote */
  int signature;   /* of the data */
  bool verify;
};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
