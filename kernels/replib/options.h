/* The command line; the letters are those of the published mini-application. */
#ifndef REPLIB_OPTIONS_H
#define REPLIB_OPTIONS_H

#include "harness/command_line.h"

#include <stdbool.h>

enum distribution { RND1B, FILE1B, FILENB };

enum backend_index { MPIIO, H5P };

extern const char *const distribution_names[], *const backend_names[]; /* end with NULL */

struct options {
  int distribution;
  int backend;
  const char *output;
  const char *file; /* block sizes; NULL: all equal */
  bool invert;      /* rank r takes the line of rank P - 1 - r */
  int cells;
  int sim_steps; /* simulation steps per reporting step */
  int rep_steps; /* reporting steps */
  int time_ms;   /* simulated work before each write; 0: IOR style */
  bool read;     /* a report of an earlier run, instead of writing one */
  bool verify;
  bool sync;
};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options);

#endif
