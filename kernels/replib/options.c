#include "options.h"

#include "harness/message.h"

static const char help[] =
    "usage: mpiexec -n RANKS replib [OPTION...]\n"
    "\n"
    "The reports of NEURON simulations: in each reporting step every rank writes one block of\n"
    "floats into one shared file, all blocks of a step side by side, by MPI_File_write_all.\n"
    "\n"
    "  -w, --write rnd1b|file1b|fileNb\n"
    "                            what a rank writes in a step: a block of random size (default), "
    "a\n"
    "                            block of the size given with --file, or all the chunks given\n"
    "                            there, each in its own place\n"
    "  -b, --backend mpiio|h5p   h5p, with file1b: a dataset of simulation steps by compartments "
    "in\n"
    "                            one HDF5 file, in chunks; what a block has beyond whole steps is\n"
    "                            not written\n"
    "  -c, --numcells N          rnd1b: cells, dealt to the ranks in turn (default 10, at least\n"
    "                            one per rank); each has 100 to 350 floats per simulation step\n"
    "  -f, --file FILE           one line per rank, 'rank,N+1,size,...,offset,...', with the "
    "bytes\n"
    "                            of N chunks. file1b joins them to one block and takes no notice "
    "of\n"
    "                            the offsets; without a file every block has 665,600 bytes.\n"
    "                            fileNb needs offsets at which all chunks together fill a step\n"
    "  -i, --invert              with --file: rank r takes the line of rank RANKS-1-r\n"
    "  -o, --output FILE         the report (default ./currents.bbp)\n"
    "  -s, --sim-steps N         simulation steps in a reporting step (default 15)\n"
    "  -r, --rep-steps N         reporting steps (default 1)\n"
    "  -t, --time MS             milliseconds of work before each write, filled up by sleep\n"
    "                            (default 100); 0: IOR style, open, write all steps, close\n"
    "      --read                read a report that an earlier run with the same options wrote\n"
    "  -v, --verify              read the report back and compare every value\n"
    "      --sync                MPI_File_sync before closing; counts as I/O time\n"
    "  -h, --help                this text\n"
    "\n"
    "One JSON line goes to stdout, all else to stderr. Exit status: 0 done, 1 I/O failed or\n"
    "wrong values found, 2 the command line or the file of block sizes is unusable.\n"
    "\n"
    "example: mpiexec -n 4 replib -w file1b -r 20 -t 50 -v\n";

const char *const distribution_names[] = {"rnd1b", "file1b", "fileNb", NULL};
const char *const backend_names[] = {"mpiio", "h5p", NULL};

static bool consistent(const struct options *options, int rank) {
  const char *fault = NULL;
  if (options->distribution == RND1B && options->file != NULL)
    fault = "--file belongs to --write file1b or fileNb";
  if (options->distribution == RND1B && options->invert)
    fault = "--invert belongs to --write file1b or fileNb";
  if (options->distribution == FILENB && options->file == NULL)
    fault = "--write fileNb needs --file";
  if (options->distribution != FILE1B && options->backend == H5P)
    fault = "--backend h5p goes with --write file1b only";
  if (fault != NULL)
    complain_once(rank, "%s\nhint: replib --help lists the options", fault);
  return fault == NULL;
}

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options) {
  *options = (struct options){
      .output = "./currents.bbp", .cells = 10, .sim_steps = 15, .rep_steps = 1, .time_ms = 100};
  const struct option_rule rules[] = {
      {"write", 'w', OPTION_CHOICE, &options->distribution, 0, distribution_names},
      {"backend", 'b', OPTION_CHOICE, &options->backend, 0, backend_names},
      {"numcells", 'c', OPTION_COUNT, &options->cells, 1, NULL},
      {"file", 'f', OPTION_TEXT, &options->file, 0, NULL},
      {"invert", 'i', OPTION_SWITCH, &options->invert, 0, NULL},
      {"output", 'o', OPTION_TEXT, &options->output, 0, NULL},
      {"sim-steps", 's', OPTION_COUNT, &options->sim_steps, 1, NULL},
      {"rep-steps", 'r', OPTION_COUNT, &options->rep_steps, 1, NULL},
      {"time", 't', OPTION_COUNT, &options->time_ms, 0, NULL},
      {"read", '\0', OPTION_SWITCH, &options->read, 0, NULL},
      {"verify", 'v', OPTION_SWITCH, &options->verify, 0, NULL},
      {"sync", '\0', OPTION_SWITCH, &options->sync, 0, NULL},
  };
  const struct command_line line = {
      .help = help, .rules = rules, .rule_count = sizeof rules / sizeof *rules};
  enum options_outcome outcome = command_line_parse(&line, argc, argv, rank);
  if (outcome == OPTIONS_RUN && !consistent(options, rank))
    return OPTIONS_WRONG;
  return outcome;
}
