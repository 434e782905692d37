/* The command line. */
#ifndef BTIO_OPTIONS_H
#define BTIO_OPTIONS_H

#include <stdbool.h>

struct options {
  bool verify;
  bool sync;
  int sweeps; /* relaxation sweeps before each dump */
  const char *deck;
};

enum options_outcome { OPTIONS_RUN, OPTIONS_HELP_SHOWN, OPTIONS_WRONG };

/* Every rank parses the same arguments; rank 0 prints help (stdout) or the fault (stderr). */
enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
