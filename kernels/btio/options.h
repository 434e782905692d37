/* The command line. */
#ifndef BTIO_OPTIONS_H
#define BTIO_OPTIONS_H

#include "harness/command_line.h"

#include <stdbool.h>

enum { VARIANT_OF_DECK = -1 };

struct options {
  bool verify;
  bool sync;
  int sweeps;  /* relaxation sweeps before each dump */
  int variant; /* enum variant_index, or VARIANT_OF_DECK */
  const char *deck;
};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
