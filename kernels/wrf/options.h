/* The command line. */
#ifndef WRF_OPTIONS_H
#define WRF_OPTIONS_H

#include "harness/command_line.h"

#include <stdbool.h>

enum { DIRECTORY_BYTES_MAX = 4000 };

struct options {
  int nx, ny, nz; /* west_east, south_north, bottom_top */
  int variables;  /* of wrfinput, wrfout and wrfrst: two in five are 3-D */
  int steps;
  int history;  /* steps from one wrfout to the next */
  int restart;  /* steps from one wrfrst to the next; 0: none */
  int boundary; /* steps from one record of wrfbdy to the next */
  int time_ms;  /* simulated work in each step */
  const char *directory;
  bool prepare; /* make wrfinput and wrfbdy, and nothing else */
  bool read;    /* read what an earlier run wrote, and nothing else */
  bool verify;
  bool sync;
};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
