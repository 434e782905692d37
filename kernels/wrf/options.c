#include "options.h"

#include "harness/message.h"

#include <string.h>

static const char help[] =
    "usage: mpiexec -n RANKS wrf --prepare [OPTION...], then mpiexec -n RANKS wrf [OPTION...]\n"
    "\n"
    "The files of the weather model WRF through PnetCDF (CDF-2): reads wrfinput_d01, one "
    "collective\n"
    "call per variable; wrfbdy_d01, one tiny collective call per variable, boundary row and "
    "level;\n"
    "writes wrfout_d01_DATE and wrfrst_d01_DATE, one collective call per variable.\n"
    "\n"
    "      --prepare             make wrfinput_d01 and wrfbdy_d01, and nothing else\n"
    "      --nx N --ny N --nz N  grid: west_east, south_north, bottom_top (default 64 48 16)\n"
    "      --variables N         of a file, two in five 3-D, the others 2-D (default 150)\n"
    "      --steps N             model steps, an hour each (default 4)\n"
    "      --history-interval N  steps from one wrfout to the next (default 2)\n"
    "      --restart-interval N  steps from one wrfrst to the next (default 4; 0: none)\n"
    "      --boundary-interval N steps from one record of wrfbdy to the next (default 4)\n"
    "      --time MS             milliseconds of work in each step, by sleep (default 0)\n"
    "  -d, --directory DIR       where the files are (default .); it must exist\n"
    "      --read                read the wrfout and wrfrst of an earlier run, and nothing else\n"
    "  -v, --verify              compare all that is read, and read back all that was written\n"
    "      --sync                ncmpi_sync before closing; counts as I/O time\n"
    "  -h, --help                this text\n"
    "\n"
    "One JSON line goes to stdout, all else to stderr. Exit status: 0 done, 1 I/O failed or\n"
    "wrong values found, 2 the command line or the number of ranks is unusable.\n"
    "\n"
    "example: mpiexec -n 4 wrf --prepare && mpiexec -n 4 wrf --verify\n";

/* Dates have a year of four digits. */
enum { STEPS_MAX = 70126559 /* hours from the beginning of 2000 to the end of 9999, less one */ };

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options) {
  *options = (struct options){.nx = 64,
                              .ny = 48,
                              .nz = 16,
                              .variables = 150,
                              .steps = 4,
                              .history = 2,
                              .restart = 4,
                              .boundary = 4,
                              .directory = "."};
  const struct option_rule rules[] = {
      {"nx", '\0', OPTION_COUNT, &options->nx, 1, NULL},
      {"ny", '\0', OPTION_COUNT, &options->ny, 1, NULL},
      {"nz", '\0', OPTION_COUNT, &options->nz, 1, NULL},
      {"variables", '\0', OPTION_COUNT, &options->variables, 1, NULL},
      {"steps", '\0', OPTION_COUNT, &options->steps, 1, NULL},
      {"history-interval", '\0', OPTION_COUNT, &options->history, 1, NULL},
      {"restart-interval", '\0', OPTION_COUNT, &options->restart, 0, NULL},
      {"boundary-interval", '\0', OPTION_COUNT, &options->boundary, 1, NULL},
      {"time", '\0', OPTION_COUNT, &options->time_ms, 0, NULL},
      {"directory", 'd', OPTION_TEXT, &options->directory, 0, NULL},
      {"prepare", '\0', OPTION_SWITCH, &options->prepare, 0, NULL},
      {"read", '\0', OPTION_SWITCH, &options->read, 0, NULL},
      {"verify", 'v', OPTION_SWITCH, &options->verify, 0, NULL},
      {"sync", '\0', OPTION_SWITCH, &options->sync, 0, NULL},
  };
  const struct command_line line = {
      .help = help, .rules = rules, .rule_count = sizeof rules / sizeof *rules};
  enum options_outcome outcome = command_line_parse(&line, argc, argv, rank);
  if (outcome == OPTIONS_RUN && strlen(options->directory) > DIRECTORY_BYTES_MAX) {
    complain_once(rank, "--directory is longer than %d bytes", DIRECTORY_BYTES_MAX);
    return OPTIONS_WRONG;
  }
  if (outcome == OPTIONS_RUN && options->steps > STEPS_MAX) {
    complain_once(rank, "--steps %d: hours beyond the year 9999\nhint: at most %d", options->steps,
                  STEPS_MAX);
    return OPTIONS_WRONG;
  }
  if (outcome == OPTIONS_RUN && options->prepare && options->read) {
    complain_once(rank, "--prepare and --read do not go together");
    return OPTIONS_WRONG;
  }
  return outcome;
}
