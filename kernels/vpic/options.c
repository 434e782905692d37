#include "options.h"

#include "harness/message.h"

#include <limits.h>

enum { PARTICLES_DEFAULT = 65536 };

static const char help[] =
    "usage: mpiexec -n RANKS vpic [OPTION...]\n"
    "\n"
    "VPIC-IO: the particles of a plasma simulation in one HDF5 file. In every step all ranks make\n"
    "eight one-dimensional datasets, x y z id1 id2 px py pz, in a group Step#0, Step#1, ..., and\n"
    "each writes its particles into one piece of each of them: 32 bytes per particle.\n"
    "\n"
    "      --particles N     particles of each rank (default 65536; published: 8388608)\n"
    "      --steps N         steps (default 5)\n"
    "      --time MS         milliseconds of work before each step, by sleep (default 0)\n"
    "      --transfer collective|independent\n"
    "                        how HDF5 calls MPI-IO (default collective)\n"
    "  -o, --output FILE     the file (default ./vpic.h5)\n"
    "      --read            read a file that an earlier run with the same options wrote\n"
    "  -v, --verify          read the file back and compare every value\n"
    "      --sync            H5Fflush before closing, with MPI_File_sync; counts as I/O time\n"
    "  -h, --help            this text\n"
    "\n"
    "One JSON line goes to stdout, all else to stderr. Exit status: 0 done, 1 I/O failed or\n"
    "wrong values found, 2 the command line is unusable.\n"
    "\n"
    "example: mpiexec -n 4 vpic --particles 262144 --steps 5 --verify\n";

const char *const transfer_names[] = {"collective", "independent", NULL};

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options) {
  *options = (struct options){.particles = PARTICLES_DEFAULT, .steps = 5, .output = "./vpic.h5"};
  const struct option_rule rules[] = {
      {"particles", '\0', OPTION_COUNT, &options->particles, 1, NULL},
      {"steps", '\0', OPTION_COUNT, &options->steps, 1, NULL},
      {"time", '\0', OPTION_COUNT, &options->time_ms, 0, NULL},
      {"transfer", '\0', OPTION_CHOICE, &options->transfer, 0, transfer_names},
      {"output", 'o', OPTION_TEXT, &options->output, 0, NULL},
      {"read", '\0', OPTION_SWITCH, &options->read, 0, NULL},
      {"verify", 'v', OPTION_SWITCH, &options->verify, 0, NULL},
      {"sync", '\0', OPTION_SWITCH, &options->sync, 0, NULL},
  };
  const struct command_line line = {
      .help = help, .rules = rules, .rule_count = sizeof rules / sizeof *rules};
  enum options_outcome outcome = command_line_parse(&line, argc, argv, rank);
  if (outcome == OPTIONS_RUN && options->particles > INT_MAX / (int)sizeof(float)) {
    complain_once(rank,
                  "--particles %d: a rank's part of a dataset is larger than 2 GiB, the limit "
                  "of one MPI-IO call\nhint: run on more ranks",
                  options->particles);
    return OPTIONS_WRONG;
  }
  return outcome;
}
