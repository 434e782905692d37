#include "simulation.h"

#include "harness/message.h"
#include "harness/mismatches.h"
#include "harness/pause.h"
#include "harness/values.h"

#include <stdlib.h>
#include <string.h>

int64_t report_file_bytes(const struct report_file *file) {
  return file->distribution->step_values * file->options->rep_steps * (int64_t)sizeof(float);
}

int64_t simulation_bytes(const struct simulation *simulation) {
  return simulation->distribution.step_values * simulation->options.rep_steps *
         (int64_t)sizeof(float);
}

bool simulation_allocate(struct simulation *simulation) {
  size_t values = (size_t)simulation->distribution.values;
  bool got = true;
  for (int i = 0; i < 2; i++) {
    simulation->buffers[i] = calloc(values, sizeof(float));
    got = got && simulation->buffers[i] != NULL;
  }
  return attempt_memory(simulation->comm, got, "two blocks of a rank",
                        "take smaller blocks or more ranks");
}

void simulation_free(struct simulation *simulation) {
  free(simulation->buffers[0]);
  free(simulation->buffers[1]);
}

/* Index in the report of the first value of a run of this rank in a step. */
static int64_t first_index(const struct simulation *simulation, int step, const struct run *run) {
  return step * simulation->distribution.step_values + run->first;
}

/* One simulation step fills every sim_steps-th value, as the published loop does; here of a run. */
static void simulate(const struct simulation *simulation, int step, float *values) {
  const struct distribution_of_rank *distribution = &simulation->distribution;
  const int64_t stride = simulation->options.sim_steps;
  for (int64_t i = 0; i < distribution->run_count; i++) {
    const struct run *run = &distribution->runs[i];
    int64_t first = first_index(simulation, step, run);
    for (int64_t slice = 0; slice < stride && slice < run->count; slice++)
      for (int64_t next = slice; next < run->count; next += stride)
        values[next] = value_float(first + next);
    values += run->count;
  }
}

/* Work, the buffers change places, the filled one is written. In IOR style, without time for work,
 * only the values of the step are made: they are different in each, so that all can be compared. */
static bool write_steps(struct simulation *simulation, struct report_file *file) {
  bool good = true;
  int filled = 0;
  for (int step = 0; step < simulation->options.rep_steps && good; step++) {
    double start = MPI_Wtime();
    simulate(simulation, step, simulation->buffers[filled]);
    pause_until(start + simulation->options.time_ms / 1e3);
    simulation->report.compute_s += MPI_Wtime() - start;
    good = simulation->backend->write(file, step, simulation->buffers[filled]);
    filled = 1 - filled;
  }
  return good;
}

static struct report_file file_of(const struct simulation *simulation, struct io_times *times) {
  return (struct report_file){.comm = simulation->comm,
                              .path = simulation->options.output,
                              .times = times,
                              .options = &simulation->options,
                              .distribution = &simulation->distribution};
}

static bool write_report(struct simulation *simulation) {
  struct report_file file = file_of(simulation, &simulation->report.io);
  const struct backend *backend = simulation->backend;
  if (!backend->create(&file))
    return false;
  bool good = write_steps(simulation, &file) && backend->finish(&file, simulation->options.sync) &&
              backend->close(&file);
  simulation->report.calls = file.calls;
  if (!good)
    backend->give_up(&file);
  return good;
}

static void name_mismatches(struct simulation *simulation, const struct mismatches *wrong) {
  bool names_it;
  int64_t count = mismatches_join(simulation->comm, wrong, &names_it);
  simulation->report.mismatches = count;
  if (!names_it)
    return;
  int rank;
  MPI_Comm_rank(simulation->comm, &rank);
  complain("%s: wrong value at reporting step %lld, byte %lld, of rank %d (all from 0): "
           "expected %.9g, found %.9g; %lld of all values are wrong",
           simulation->options.output,
           (long long)(wrong->first / simulation->distribution.step_values),
           (long long)(wrong->first * (int64_t)sizeof(float)), rank,
           (double)value_float(wrong->first), wrong->found, (long long)count);
}

static void compare_step(const struct simulation *simulation, int step, const float *values,
                         struct mismatches *wrong) {
  const struct distribution_of_rank *distribution = &simulation->distribution;
  for (int64_t i = 0; i < distribution->run_count; i++) {
    const struct run *run = &distribution->runs[i];
    int64_t first = first_index(simulation, step, run);
    for (int64_t j = 0; j < run->count; j++, values++)
      if (*values != value_float(first + j))
        mismatches_add(wrong, first + j, (double)*values);
  }
}

static bool read_steps(struct simulation *simulation, struct report_file *file) {
  struct mismatches wrong = no_mismatches;
  float *values = simulation->buffers[0];
  bool good = true;
  for (int step = 0; step < simulation->options.rep_steps && good; step++) {
    memset(values, 0xff, (size_t)simulation->distribution.values * sizeof *values);
    good = simulation->backend->read(file, step, values);
    double start = MPI_Wtime();
    if (good && simulation->options.verify)
      compare_step(simulation, step, values, &wrong);
    simulation->report.verify_s += MPI_Wtime() - start;
  }
  name_mismatches(simulation, &wrong);
  return good;
}

static bool read_report(struct simulation *simulation, struct io_times *times, int64_t *calls) {
  struct report_file file = file_of(simulation, times);
  if (!simulation->backend->open(&file))
    return false;
  bool good = read_steps(simulation, &file) && simulation->backend->close(&file);
  *calls = file.calls;
  if (!good)
    simulation->backend->give_up(&file);
  return good;
}

static bool verify_report(struct simulation *simulation) {
  struct io_times not_reported = {0};
  int64_t not_counted;
  double start = MPI_Wtime();
  bool good = read_report(simulation, &not_reported, &not_counted);
  simulation->report.verify_s = MPI_Wtime() - start;
  return good;
}

bool simulation_run(struct simulation *simulation) {
  struct report *report = &simulation->report;
  if (simulation->options.read)
    return read_report(simulation, &report->io, &report->calls);
  return write_report(simulation) && (!simulation->options.verify || verify_report(simulation));
}
