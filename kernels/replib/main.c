/* Replib: the reports that NEURON's ReportingLib writes, as the mini-application of neuromapp. */
#include "harness/message.h"
#include "harness/run.h"
#include "simulation.h"

#include <stdio.h>

const char kernel_name[] = "replib";

static void print_setting(const void *setting) {
  const struct simulation *simulation = setting;
  const struct options *options = &simulation->options;
  printf(",\"backend\":\"%s\",\"style\":\"%s\",\"sim_steps\":%d,\"rep_steps\":%d,\"time_ms\":%d,"
         "\"step_bytes\":%lld",
         simulation->backend->name, options->time_ms > 0 ? "reportinglib" : "ior",
         options->sim_steps, options->rep_steps, options->time_ms,
         (long long)(simulation->distribution.step_values * (int64_t)sizeof(float)));
}

static bool report(struct simulation *simulation, double start) {
  const struct options *options = &simulation->options;
  simulation->report.comm = simulation->comm;
  simulation->report.variant = distribution_names[options->distribution];
  simulation->report.path = options->output;
  simulation->report.mode = options->read ? 'r' : 'w';
  simulation->report.bytes = simulation_bytes(simulation);
  simulation->report.verify = options->verify;
  return report_print(&simulation->report, print_setting, simulation, start);
}

static bool choose_backend(struct simulation *simulation, int rank) {
  static const struct backend *const backends[] = {&backend_mpiio, &backend_h5p};
  simulation->backend = backends[simulation->options.backend];
  bool there = simulation->backend->create != NULL;
  if (!there)
    complain_once(rank,
                  "%s was left out: this replib was built without parallel HDF5\n"
                  "hint: install it (Debian: libhdf5-openmpi-dev pkg-config), then make",
                  simulation->backend->name);
  return there;
}

static int run(int argc, char **argv, double start) {
  struct simulation simulation = {.comm = MPI_COMM_WORLD};
  int rank;
  MPI_Comm_rank(simulation.comm, &rank);
  enum options_outcome outcome = options_parse(argc, argv, rank, &simulation.options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  if (!choose_backend(&simulation, rank))
    return STATUS_USAGE;
  if (!distribution_make(&simulation.options, simulation.comm, &simulation.distribution)) {
    distribution_free(&simulation.distribution);
    return STATUS_USAGE;
  }
  bool good = simulation_allocate(&simulation) && simulation_run(&simulation) &&
              report(&simulation, start) && simulation.report.mismatches == 0;
  simulation_free(&simulation);
  distribution_free(&simulation.distribution);
  return good ? STATUS_DONE : STATUS_FAILED;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
