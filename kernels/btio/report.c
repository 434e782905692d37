#include "report.h"

#include "json.h"

#include <inttypes.h>
#include <string.h>

/* Each is the maximum over the ranks, so they do not add up exactly. */
enum { TOTAL, IO, OPEN, WRITE, READ, SYNC, CLOSE, COMPUTE, VERIFY, TIMES };

static const char *const time_names[TIMES] = {
    "total_s", "io_s", "open_s", "write_s", "read_s", "sync_s", "close_s", "compute_s", "verify_s"};

static void slowest_rank(const struct benchmark *benchmark, double total_s, double slowest[TIMES]) {
  const struct io_times *io = &benchmark->io;
  double mine[TIMES] = {
      [TOTAL] = total_s,
      [IO] = io->open_s + io->write_s + io->read_s + io->sync_s + io->close_s,
      [OPEN] = io->open_s,
      [WRITE] = io->write_s,
      [READ] = io->read_s,
      [SYNC] = io->sync_s,
      [CLOSE] = io->close_s,
      [COMPUTE] = benchmark->compute_s,
      [VERIFY] = benchmark->verify_s,
  };
  MPI_Reduce(mine, slowest, TIMES, MPI_DOUBLE, MPI_MAX, 0, benchmark->comm);
}

/* "Open MPI v4.1.4" out of a version text that goes on after a comma or a line end. */
static void print_mpi_version(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = '\0';
  json_print_string(stdout, version);
}

static void print_setting(const struct benchmark *benchmark) {
  const struct deck *deck = &benchmark->deck;
  int ranks;
  MPI_Comm_size(benchmark->comm, &ranks);
  printf("{\"kernel\":\"btio\",\"variant\":\"full\",\"ranks\":%d,\"grid\":[%d,%d,%d],"
         "\"dumps\":%d,\"sweeps\":%d,\"bytes\":%" PRId64 ",\"path\":",
         ranks, deck->grid[0], deck->grid[1], deck->grid[2], deck->dumps,
         deck->mode == 'w' ? benchmark->options.sweeps : 0, deck_file_bytes(deck));
  json_print_string(stdout, benchmark->path);
  printf(",\"mode\":\"%c\"", deck->mode);
}

static const char *verdict(const struct benchmark *benchmark) {
  if (!benchmark->options.verify)
    return "null";
  return benchmark->mismatches == 0 ? "true" : "false";
}

bool report_print(const struct benchmark *benchmark, double total_s) {
  double slowest[TIMES];
  int rank;
  MPI_Comm_rank(benchmark->comm, &rank);
  slowest_rank(benchmark, total_s, slowest);
  if (rank != 0)
    return true;
  print_setting(benchmark);
  for (int time = 0; time < TIMES; time++)
    printf(",\"%s\":%.6f", time_names[time], slowest[time]);
  printf(",\"verified\":%s,\"mismatches\":%" PRId64 ",\"mpi\":", verdict(benchmark),
         benchmark->mismatches);
  print_mpi_version();
  printf("}\n");
  return fflush(stdout) == 0 && !ferror(stdout);
}
