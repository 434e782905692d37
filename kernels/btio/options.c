#include "options.h"

#include "message.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { SWEEPS_DEFAULT = 5 /* BT dumps every fifth time step */ };

static const char deck_default[] = "inputbt.data";

static const char help[] =
    "usage: mpiexec -n RANKS btio [--verify] [--sync] [--sweeps N] [DECK]\n"
    "\n"
    "BTIO full: RANKS (1, 4, 9, 16, ...) ranks write a 3-D field of 5 doubles per point into\n"
    "one shared file, DIRECTORY/btio.full.out, by one collective MPI-IO call per dump.\n"
    "\n"
    "  --verify    read the file back afterwards and compare every value\n"
    "  --sync      MPI_File_sync before the file is closed; counts as I/O time\n"
    "  --sweeps N  relaxation sweeps before each dump (default 5; 0: no compute)\n"
    "  -h, --help  this text\n"
    "\n"
    "DECK (default inputbt.data) has five lines, each may end in '# comment':\n"
    "  w             w: write, r: read a file that was written before\n"
    "  0             method: 0 is MPI collective, the only one so far\n"
    "  20            number of dumps\n"
    "  64 64 64      grid points nx ny nz\n"
    "  /scratch/me   output directory; it must exist\n"
    "\n"
    "One JSON line goes to stdout, all else to stderr. Exit status: 0 done, 1 I/O failed or\n"
    "wrong values found, 2 the command line, the deck or the number of ranks is unusable.\n"
    "\n"
    "example: mpiexec -n 4 btio --verify inputbt.data\n";

static bool parse_sweeps(const char *text, int *sweeps) {
  char *end = NULL;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < 0 || value > INT_MAX)
    return false;
  *sweeps = (int)value;
  return true;
}

static enum options_outcome wrong(int rank, const char *what, const char *argument) {
  complain_once(rank, "%s '%s'\nhint: btio --help lists the options", what, argument);
  return OPTIONS_WRONG;
}

static enum options_outcome parse_flags(int argc, char **argv, int rank, struct options *options) {
  static const struct option known[] = {
      {"verify", no_argument, NULL, 'v'},
      {"sync", no_argument, NULL, 's'},
      {"sweeps", required_argument, NULL, 'n'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  int flag;
  opterr = 0;
  while ((flag = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
    switch (flag) {
    case 'v':
      options->verify = true;
      break;
    case 's':
      options->sync = true;
      break;
    case 'n':
      if (!parse_sweeps(optarg, &options->sweeps))
        return wrong(rank, "--sweeps needs a whole number, 0 or more, not", optarg);
      break;
    case 'h':
      if (rank == 0)
        fputs(help, stdout);
      return OPTIONS_HELP_SHOWN;
    case ':':
      return wrong(rank, "a value is missing after", argv[optind - 1]);
    default:
      return wrong(rank, "unknown option", argv[optind - 1]);
    }
  }
  return OPTIONS_RUN;
}

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options) {
  *options = (struct options){.sweeps = SWEEPS_DEFAULT, .deck = deck_default};
  enum options_outcome outcome = parse_flags(argc, argv, rank, options);
  if (outcome != OPTIONS_RUN)
    return outcome;
  if (argc - optind > 1)
    return wrong(rank, "one deck is enough; unexpected", argv[optind + 1]);
  if (argc - optind == 1)
    options->deck = argv[optind];
  return OPTIONS_RUN;
}
