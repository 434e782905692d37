/* The I/O of the weather model WRF, through PnetCDF. */
#include "harness/attempt.h"
#include "harness/message.h"
#include "harness/run.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

const char kernel_name[] = "wrf";

static void print_setting(const void *setting) {
  const struct model *model = setting;
  const struct options *options = &model->options;
  printf(",\"grid\":[%d,%d,%d],\"variables\":%d,\"steps\":%d,\"time_ms\":%d,\"files\":%d",
         options->nx, options->ny, options->nz, options->variables, options->steps,
         options->time_ms, model->files);
}

static bool report(struct model *model, double start) {
  const struct options *options = &model->options;
  struct report *report = &model->report;
  report->comm = model->domain.comm;
  report->variant = options->prepare ? "prepare" : options->read ? "read" : "run";
  report->path = options->directory;
  report->mode = options->read ? 'r' : 'w';
  report->verify = options->verify;
  MPI_Allreduce(&model->bytes, &report->bytes, 1, MPI_INT64_T, MPI_SUM, report->comm);
  return report_print(report, print_setting, model, start);
}

static int run(int argc, char **argv, double start) {
  static struct model model;
  struct domain *domain = &model.domain;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  enum options_outcome outcome = options_parse(argc, argv, rank, &model.options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  if (!domain_make(&model.options, MPI_COMM_WORLD, domain))
    return STATUS_USAGE;
  size_t points = (size_t)domain->count[LEVELS] * (size_t)domain->count[NORTH];
  domain->values = malloc(points * (size_t)domain->count[EAST] * sizeof *domain->values);
  bool good = attempt_memory(domain->comm, domain->values != NULL, "a patch with all levels",
                             "run on more ranks or use a smaller grid") &&
              model_run(&model) && report(&model, start) && model.report.mismatches == 0;
  free(domain->values);
  return good ? STATUS_DONE : STATUS_FAILED;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
