#include "options.h"

#include "harness/message.h"

#include <limits.h>
#include <string.h>

static const char help[] =
    "usage: mpiexec -n RANKS io500 -d DIR [OPTION...] PHASE\n"
    "\n"
    "One phase of the IO500 benchmark, in the files below DIR. `forebay bench io500` runs all of\n"
    "them in order. DIR must have the directories ior-easy, ior-hard, mdtest-easy and "
    "mdtest-hard.\n"
    "\n"
    "  ior-easy-write, ior-easy-read      a file per rank, 2 MiB in each call\n"
    "  ior-hard-write, ior-hard-read      one shared file, 47,008 bytes of each rank in turn\n"
    "  ior-rnd4K-easy-read                4 KiB at random places of the files of ior-easy-write\n"
    "  mdtest-easy-write, -stat, -delete  empty files, a directory per rank\n"
    "  mdtest-hard-write, -stat, -read, -delete\n"
    "                                     files of 3,901 bytes, one directory for all ranks\n"
    "  find                               names with 01 and 3,901 bytes, newer than "
    "DIR/timestampfile\n"
    "  placement                          the node of each rank, and the shift to use\n"
    "\n"
    "  -d, --directory DIR    where the files are\n"
    "      --limit N          calls or files of each rank, at most (default 1)\n"
    "      --stonewall S      after S seconds the ranks stop, agree on the largest number that "
    "one\n"
    "                         of them has reached, and all go on to it (default 0: only the "
    "limit)\n"
    "      --shift N          read, stat and delete what the Nth rank after this one wrote "
    "(default "
    "0)\n"
    "      --signature N      of the data: give phases that read the N of those that wrote "
    "(default "
    "1)\n"
    "  -v, --verify           compare every byte that is read; counts as I/O time, as in ior\n"
    "  -h, --help             this text\n"
    "\n"
    "One JSON line goes to stdout, all else to stderr. Exit status: 0 done, 1 I/O failed or\n"
    "wrong values found, 2 the command line is unusable.\n"
    "\n"
    "example: mkdir -p run/ior-easy && mpiexec -n 4 io500 -d run --limit 64 ior-easy-write\n";

static enum options_outcome checked(struct options *options, const char *name, int rank) {
  options->phase = name == NULL ? NULL : phase_named(name);
  if (options->phase == NULL) {
    complain_once(rank, "%s%s%s\nhint: %s --help lists the phases",
                  name == NULL ? "no phase is named" : "there is no phase '",
                  name == NULL ? "" : name, name == NULL ? "" : "'", kernel_name);
    return OPTIONS_WRONG;
  }
  if (options->directory == NULL) {
    complain_once(rank, "no directory is named\nhint: give it with --directory");
    return OPTIONS_WRONG;
  }
  if (strlen(options->directory) > DIRECTORY_BYTES_MAX) {
    complain_once(rank, "--directory is longer than %d bytes", DIRECTORY_BYTES_MAX);
    return OPTIONS_WRONG;
  }
  return OPTIONS_RUN;
}

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options) {
  const char *name = NULL;
  *options = (struct options){.limit = 1, .signature = 1};
  const struct option_rule rules[] = {
      {"directory", 'd', OPTION_TEXT, &options->directory, 0, NULL},
      {"limit", '\0', OPTION_COUNT, &options->limit, 1, NULL},
      {"stonewall", '\0', OPTION_COUNT, &options->stonewall_s, 0, NULL},
      {"shift", '\0', OPTION_COUNT, &options->shift, 0, NULL},
      {"signature", '\0', OPTION_COUNT, &options->signature, 0, NULL},
      {"verify", 'v', OPTION_SWITCH, &options->verify, 0, NULL},
  };
  const struct command_line line = {.help = help,
                                    .rules = rules,
                                    .rule_count = sizeof rules / sizeof *rules,
                                    .operand = &name,
                                    .operand_name = "phase"};
  enum options_outcome outcome = command_line_parse(&line, argc, argv, rank);
  return outcome == OPTIONS_RUN ? checked(options, name, rank) : outcome;
}
