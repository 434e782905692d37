/* The command line. */
#ifndef VPIC_OPTIONS_H
#define VPIC_OPTIONS_H

#include "harness/command_line.h"

#include <stdbool.h>

enum transfer { COLLECTIVE, INDEPENDENT };

extern const char *const transfer_names[]; /* ends with NULL */

struct options {
  int particles; /* of each rank */
  int steps;
  int time_ms; /* simulated work before each step */
  int transfer;
  const char *output;
  bool read; /* a file of an earlier run, instead of writing one */
  bool verify;
  bool sync;
};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
