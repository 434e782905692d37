#include "options.h"

#include "variants.h"

enum {
  SWEEPS_DEFAULT = 5,             /* BT dumps every fifth time step */
  COLLBUF_BYTES_DEFAULT = 1000000 /* as in NAS's input file */
};

static const char help[] =
    "usage: mpiexec -n RANKS btio [--verify] [--sync] [--sweeps N] [--variant NAME] [DECK]\n"
    "\n"
    "The I/O of NAS BT: RANKS (1, 4, 9, 16, ...) ranks dump a 3-D field of 5 doubles per point.\n"
    "\n"
    "  --verify        read everything back afterwards and compare every value\n"
    "  --sync          flush to storage before the file is closed; counts as I/O time\n"
    "  --sweeps N      relaxation sweeps before each dump (default 5; 0: no compute)\n"
    "  --read-interval N  after every N dumps read them back, and write the next ones over them\n"
    "                  (rd_interval of NAS; default 0: never). To read such a file, say it again\n"
    "  --variant NAME  how to write, whatever method the deck names:\n"
    "      full                 method 0: one collective MPI-IO call per dump, btio.full.out\n"
    "      independent          method 1: one independent MPI-IO call per dump and rank, same "
    "file\n"
    "      pnetcdf              method 2: one blocking PnetCDF call per cell, btio.nc\n"
    "      pnetcdf-nonblocking  method 3: PnetCDF requests, one wait per dump, same file\n"
    "      simple               one independent MPI-IO call per row of points, btio.simple.out\n"
    "      epio                 a file per rank of Fortran records, btio.epio.out.0000, ...\n"
    "      fortran              one Fortran record per point, direct access, btio.fortran.out\n"
    "  --collbuf-nodes N  full: give the hints cb_nodes=N, cb_buffer_size and\n"
    "                  collective_buffering=true with the file view, as NAS does (default 0: "
    "none)\n"
    "  --collbuf-size BYTES  the hint cb_buffer_size (default 1000000)\n"
    "  -h, --help      this text\n"
    "\n"
    "DECK (default inputbt.data) has five lines, each may end in '# comment':\n"
    "  w             w: write, r: read a file that was written before\n"
    "  0             method, 0 to 3\n"
    "  20            number of dumps\n"
    "  64 64 64      grid points nx ny nz\n"
    "  /scratch/me   output directory; it must exist\n"
    "\n"
    "One JSON line goes to stdout, all else to stderr. Exit status: 0 done, 1 I/O failed or\n"
    "wrong values found, 2 the command line, the deck or the number of ranks is unusable.\n"
    "\n"
    "example: mpiexec -n 4 btio --verify inputbt.data\n";

enum options_outcome options_parse(int argc, char **argv, int rank, struct options *options) {
  *options = (struct options){.sweeps = SWEEPS_DEFAULT,
                              .collbuf_bytes = COLLBUF_BYTES_DEFAULT,
                              .variant = VARIANT_OF_DECK,
                              .deck = "inputbt.data"};
  const struct option_rule rules[] = {
      {.name = "verify", .kind = OPTION_SWITCH, .target = &options->verify},
      {.name = "sync", .kind = OPTION_SWITCH, .target = &options->sync},
      {.name = "sweeps", .kind = OPTION_COUNT, .target = &options->sweeps},
      {.name = "read-interval", .kind = OPTION_COUNT, .target = &options->read_interval},
      {.name = "collbuf-nodes", .kind = OPTION_COUNT, .target = &options->collbuf_nodes},
      {.name = "collbuf-size", .kind = OPTION_COUNT, .target = &options->collbuf_bytes, .low = 1},
      {.name = "variant",
       .kind = OPTION_CHOICE,
       .target = &options->variant,
       .choices = variant_names},
  };
  const struct command_line line = {.help = help,
                                    .rules = rules,
                                    .rule_count = sizeof rules / sizeof *rules,
                                    .operand = &options->deck,
                                    .operand_name = "deck"};
  return command_line_parse(&line, argc, argv, rank);
}
