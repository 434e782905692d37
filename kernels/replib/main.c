/* Replib: the reports that NEURON's ReportingLib writes, as the mini-application of neuromapp. */
#include "harness/message.h"
#include "harness/run.h"
#include "report_file.h"

#include <stdio.h>

const char kernel_name[] = "replib";

static void print_setting(const void *setting) {
  const struct simulation *simulation = setting;
  const struct options *options = &simulation->options;
  printf(",\"style\":\"%s\",\"sim_steps\":%d,\"rep_steps\":%d,\"time_ms\":%d,\"step_bytes\":%lld",
         options->time_ms > 0 ? "reportinglib" : "ior", options->sim_steps, options->rep_steps,
         options->time_ms, (long long)simulation->distribution.step_bytes);
}

static bool report(struct simulation *simulation, double start) {
  const struct options *options = &simulation->options;
  simulation->report.comm = simulation->comm;
  simulation->report.variant = options->distribution == RND1B ? "rnd1b" : "file1b";
  simulation->report.path = options->output;
  simulation->report.mode = options->read ? 'r' : 'w';
  simulation->report.bytes = simulation_bytes(simulation);
  simulation->report.verify = options->verify;
  return report_print(&simulation->report, print_setting, simulation, start);
}

static int run(int argc, char **argv, double start) {
  struct simulation simulation = {.comm = MPI_COMM_WORLD};
  int rank;
  MPI_Comm_rank(simulation.comm, &rank);
  enum options_outcome outcome = options_parse(argc, argv, rank, &simulation.options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  if (!distribution_make(&simulation.options, simulation.comm, &simulation.distribution))
    return STATUS_USAGE;
  bool good = simulation_allocate(&simulation) && simulation_run(&simulation) &&
              report(&simulation, start) && simulation.report.mismatches == 0;
  simulation_free(&simulation);
  return good ? STATUS_DONE : STATUS_FAILED;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
