/* BTIO full: the I/O of NAS BT, one collective MPI-IO write per dump into one shared file. */
#include "benchmark.h"
#include "message.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char file_name[] = "btio.full.out";

static void set_path(struct benchmark *benchmark) {
  const char *directory = benchmark->deck.directory;
  bool ends_in_slash = directory[strlen(directory) - 1] == '/';
  snprintf(benchmark->path, sizeof benchmark->path, "%s%s%s", directory, ends_in_slash ? "" : "/",
           file_name);
}

static bool report(const struct benchmark *benchmark, double start) {
  bool good = report_print(benchmark, MPI_Wtime() - start);
  if (!good)
    complain("standard output: the result could not be written");
  return good;
}

static int measure(struct benchmark *benchmark, double start) {
  set_path(benchmark);
  layout_make(&benchmark->partition, &benchmark->layout);
  bool good = benchmark_allocate(benchmark) && benchmark_run(benchmark) &&
              report(benchmark, start) && benchmark->mismatches == 0;
  benchmark_free(benchmark);
  layout_free(&benchmark->layout);
  return good ? STATUS_DONE : STATUS_FAILED;
}

static int run(int argc, char **argv, double start) {
  struct benchmark benchmark = {.comm = MPI_COMM_WORLD};
  int rank;
  MPI_Comm_rank(benchmark.comm, &rank);
  enum options_outcome outcome = options_parse(argc, argv, rank, &benchmark.options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  if (!deck_read(benchmark.options.deck, benchmark.comm, &benchmark.deck))
    return STATUS_USAGE;
  if (!partition_make(&benchmark.deck, benchmark.comm, &benchmark.partition))
    return STATUS_USAGE;
  int status = measure(&benchmark, start);
  partition_free(&benchmark.partition);
  return status;
}

int main(int argc, char **argv) {
  /* Beyond a file size limit (ulimit -f) a write shall fail with a message, not kill the rank. */
  signal(SIGXFSZ, SIG_IGN);
  MPI_Init(&argc, &argv);
  double start = MPI_Wtime();
  int status = run(argc, argv, start);
  MPI_Finalize();
  return status;
}
