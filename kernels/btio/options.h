/* The command line. */
#ifndef BTIO_OPTIONS_H
#define BTIO_OPTIONS_H

#include "harness/command_line.h"

#include <stdbool.h>

enum { VARIANT_OF_DECK = -1 };

struct options {
  bool verify;
  bool sync;
  int sweeps;        /* relaxation sweeps before each dump */
  int read_interval; /* dumps until they are read back and written over; 0: none is */
  int variant;       /* enum variant_index, or VARIANT_OF_DECK */
  int collbuf_nodes; /* hint cb_nodes; 0: no hints are given */
  int collbuf_bytes; /* hint cb_buffer_size */
  const char *deck;
};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
