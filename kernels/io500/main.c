/* One phase of IO500: POSIX calls of many ranks, in files and directories with the benchmark's
 * names. */
#include "options.h"
#include "phase.h"
#include "placement.h"

#include "harness/message.h"
#include "harness/run.h"

#include <inttypes.h>
#include <stdio.h>

const char kernel_name[] = "io500";

static void print_setting(const void *setting) {
  const struct benchmark *benchmark = setting;
  printf(
      ",\"operations\":%" PRId64 ",\"operations_of_rank\":%" PRId64 ",\"found\":%" PRId64
      ",\"wall_s\":%.6f,\"stonewalled\":%s,\"stonewall_s\":%.6f,\"stonewall_operations\":%" PRId64,
      benchmark->total, benchmark->operations, benchmark->found, benchmark->wall_s,
      benchmark->stonewalled ? "true" : "false", benchmark->stonewall_s,
      benchmark->stonewall_operations);
  if (benchmark->options->phase->run == placement_print)
    placement_print_fields();
}

static bool report(struct benchmark *benchmark, double start) {
  const struct options *options = benchmark->options;
  struct report *report = &benchmark->report;
  report->comm = benchmark->comm;
  report->variant = options->phase->name;
  report->path = options->directory;
  report->mode = options->phase->mode;
  /* A phase without such calls moved no data. */
  report->bytes = report->calls > 0 ? benchmark->total * options->phase->transfer_bytes : 0;
  report->verify = options->verify && options->phase->mode == 'r';
  return report_print(report, print_setting, benchmark, start);
}

static int run(int argc, char **argv, double start) {
  struct options options;
  struct benchmark benchmark = {.comm = MPI_COMM_WORLD, .options = &options};
  MPI_Comm_rank(benchmark.comm, &benchmark.rank);
  MPI_Comm_size(benchmark.comm, &benchmark.ranks);
  enum options_outcome outcome = options_parse(argc, argv, benchmark.rank, &options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  benchmark.partner = (int)(((int64_t)benchmark.rank + options.shift) % benchmark.ranks);
  bool good = options.phase->run(&benchmark) && report(&benchmark, start) &&
              benchmark.report.mismatches == 0;
  return good ? STATUS_DONE : STATUS_FAILED;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
