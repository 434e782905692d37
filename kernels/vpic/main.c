/* VPIC-IO: the particle output of a plasma simulation, through parallel HDF5. */
#include "harness/attempt.h"
#include "harness/message.h"
#include "harness/pause.h"
#include "harness/report.h"
#include "harness/run.h"
#include "particle_file.h"

#include <stdio.h>

const char kernel_name[] = "vpic";

struct simulation {
  MPI_Comm comm;
  struct options options;
  struct particles particles;
  struct report report;
};

static struct particle_file file_of(const struct simulation *simulation, struct io_times *times) {
  return (struct particle_file){.hdf5 = {.comm = simulation->comm,
                                         .path = simulation->options.output,
                                         .times = times,
                                         .id = -1},
                                .transfer = simulation->options.transfer};
}

static void work(struct simulation *simulation, int step) {
  double start = MPI_Wtime();
  particles_fill(&simulation->particles, step);
  pause_until(start + simulation->options.time_ms / 1e3);
  simulation->report.compute_s += MPI_Wtime() - start;
}

static bool write_steps(struct simulation *simulation) {
  struct particle_file file = file_of(simulation, &simulation->report.io);
  if (!hdf5_file_create(&file.hdf5))
    return false;
  for (int step = 0; step < simulation->options.steps; step++) {
    work(simulation, step);
    particle_file_write(&file, step, &simulation->particles);
  }
  simulation->report.calls = file.calls;
  bool good = hdf5_file_is_whole(&file.hdf5);
  if (good && simulation->options.sync)
    hdf5_file_sync(&file.hdf5);
  good = good && hdf5_file_close(&file.hdf5);
  if (!good)
    hdf5_file_give_up(&file.hdf5);
  return good;
}

static void name_mismatches(struct simulation *simulation, const struct mismatches *wrong) {
  bool names_it;
  simulation->report.mismatches = mismatches_join(simulation->comm, wrong, &names_it);
  if (!names_it)
    return;
  int64_t array = wrong->first / simulation->particles.total;
  complain("%s: wrong value at step %lld, dataset %s, particle %lld (from 0): found %.10g; "
           "%lld of all values are wrong",
           simulation->options.output, (long long)(array / DATASETS),
           datasets[array % DATASETS].name, (long long)(wrong->first % simulation->particles.total),
           wrong->found, (long long)simulation->report.mismatches);
}

static bool read_steps(struct simulation *simulation, struct io_times *times, int64_t *calls) {
  struct particle_file file = file_of(simulation, times);
  struct mismatches wrong = no_mismatches;
  if (!hdf5_file_open(&file.hdf5))
    return false;
  bool good = true;
  for (int step = 0; step < simulation->options.steps && good; step++) {
    particles_poison(&simulation->particles);
    good = particle_file_read(&file, step, &simulation->particles);
    double start = MPI_Wtime();
    if (good && simulation->options.verify)
      particles_compare(&simulation->particles, step, &wrong);
    simulation->report.verify_s += MPI_Wtime() - start;
  }
  *calls = file.calls;
  good = good && hdf5_file_close(&file.hdf5);
  if (!good)
    hdf5_file_give_up(&file.hdf5);
  name_mismatches(simulation, &wrong);
  return good;
}

static bool verify_written(struct simulation *simulation) {
  struct io_times not_reported = {0};
  int64_t not_counted;
  double start = MPI_Wtime();
  bool good = read_steps(simulation, &not_reported, &not_counted);
  simulation->report.verify_s = MPI_Wtime() - start;
  return good;
}

static bool read_or_write(struct simulation *simulation) {
  struct report *report = &simulation->report;
  if (simulation->options.read)
    return read_steps(simulation, &report->io, &report->calls);
  return write_steps(simulation) && (!simulation->options.verify || verify_written(simulation));
}

static void print_setting(const void *setting) {
  const struct options *options = setting;
  printf(",\"particles\":%d,\"steps\":%d,\"time_ms\":%d", options->particles, options->steps,
         options->time_ms);
}

static bool report(struct simulation *simulation, double start) {
  const struct options *options = &simulation->options;
  simulation->report.comm = simulation->comm;
  simulation->report.variant = transfer_names[options->transfer];
  simulation->report.path = options->output;
  simulation->report.mode = options->read ? 'r' : 'w';
  simulation->report.bytes = simulation->particles.total * DATASETS * VALUE_BYTES * options->steps;
  simulation->report.verify = options->verify;
  return report_print(&simulation->report, print_setting, options, start);
}

static int run(int argc, char **argv, double start) {
  struct simulation simulation = {.comm = MPI_COMM_WORLD};
  struct particles *particles = &simulation.particles;
  int rank, ranks;
  MPI_Comm_rank(simulation.comm, &rank);
  MPI_Comm_size(simulation.comm, &ranks);
  enum options_outcome outcome = options_parse(argc, argv, rank, &simulation.options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  particles->count = simulation.options.particles;
  particles->first = (int64_t)rank * particles->count;
  particles->total = (int64_t)ranks * particles->count;
  bool good = attempt_memory(simulation.comm, particles_allocate(particles),
                             "the particles of a rank", "take fewer of them (--particles)") &&
              read_or_write(&simulation) && report(&simulation, start) &&
              simulation.report.mismatches == 0;
  particles_free(particles);
  return good ? STATUS_DONE : STATUS_FAILED;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
