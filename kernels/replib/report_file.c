#include "report_file.h"

#include "harness/message.h"
#include "harness/mismatches.h"
#include "harness/mpi_file.h"
#include "harness/pause.h"
#include "harness/values.h"

#include <stdlib.h>
#include <string.h>

static const struct attempt writing = {"MPI_File_write_all", hint_out_of_space};
static const struct attempt reading = {"MPI_File_read_all", ""};

static int64_t floats_of(const struct simulation *simulation) {
  return simulation->distribution.block_bytes / (int64_t)sizeof(float);
}

int64_t simulation_bytes(const struct simulation *simulation) {
  return simulation->distribution.step_bytes * simulation->options.rep_steps;
}

bool simulation_allocate(struct simulation *simulation) {
  size_t bytes = (size_t)simulation->distribution.block_bytes;
  bool got = true;
  for (int i = 0; i < 2; i++) {
    simulation->buffers[i] = calloc(1, bytes > 0 ? bytes : 1);
    got = got && simulation->buffers[i] != NULL;
  }
  return attempt_memory(simulation->comm, got, "two blocks of a rank",
                        "take smaller blocks or more ranks");
}

void simulation_free(struct simulation *simulation) {
  free(simulation->buffers[0]);
  free(simulation->buffers[1]);
}

/* Index in the file of the first float of this rank in a step. */
static int64_t first_index(const struct simulation *simulation, int step) {
  const struct distribution_of_rank *distribution = &simulation->distribution;
  return (step * distribution->step_bytes + distribution->offset_bytes) / (int64_t)sizeof(float);
}

/* One simulation step fills every sim_steps-th value, as the published loop does. */
static void simulate(const struct simulation *simulation, int step, float *values) {
  int64_t first = first_index(simulation, step), count = floats_of(simulation);
  for (int slice = 0; slice < simulation->options.sim_steps; slice++)
    for (int64_t i = slice; i < count; i += simulation->options.sim_steps)
      values[i] = value_float(first + i);
}

/* The block of a rank in a step; the extent is the whole step, so that the file view repeats. */
static MPI_Datatype view_of(const struct distribution_of_rank *distribution) {
  int length = (int)distribution->block_bytes;
  MPI_Aint offset = (MPI_Aint)distribution->offset_bytes;
  MPI_Datatype block, step;
  MPI_Type_create_hindexed(1, &length, &offset, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)distribution->step_bytes, &step);
  MPI_Type_commit(&step);
  MPI_Type_free(&block);
  return step;
}

static bool set_view(const struct simulation *simulation, struct mpi_file *file) {
  MPI_Datatype view = view_of(&simulation->distribution);
  bool good = mpi_file_set_view(file, MPI_BYTE, view, MPI_INFO_NULL);
  MPI_Type_free(&view);
  return good;
}

static bool write_step(struct simulation *simulation, struct mpi_file *file, const float *values) {
  MPI_Status status;
  double start = MPI_Wtime();
  int count = (int)floats_of(simulation);
  int code = MPI_File_write_all(file->handle, values, count, MPI_FLOAT, &status);
  file->times->write_s += MPI_Wtime() - start;
  simulation->report.calls++;
  return mpi_file_moved(file, &writing, code, &status, MPI_FLOAT, count, "values");
}

/* Work, the buffers change places, the filled one is written. In IOR style, without time for work,
 * only the values of the step are made: they are different in each, so that all can be compared. */
static bool write_steps(struct simulation *simulation, struct mpi_file *file) {
  bool good = true;
  int filled = 0;
  for (int step = 0; step < simulation->options.rep_steps && good; step++) {
    double start = MPI_Wtime();
    simulate(simulation, step, simulation->buffers[filled]);
    pause_until(start + simulation->options.time_ms / 1e3);
    simulation->report.compute_s += MPI_Wtime() - start;
    good = write_step(simulation, file, simulation->buffers[filled]);
    filled = 1 - filled;
  }
  return good;
}

static struct mpi_file file_of(const struct simulation *simulation, struct io_times *times) {
  return (struct mpi_file){.comm = simulation->comm,
                           .path = simulation->options.output,
                           .times = times,
                           .handle = MPI_FILE_NULL};
}

static bool write_report(struct simulation *simulation) {
  struct mpi_file file = file_of(simulation, &simulation->report.io);
  if (!mpi_file_create(&file, MPI_MODE_WRONLY) || !set_view(simulation, &file))
    return false;
  bool good = write_steps(simulation, &file);
  if (good && simulation->options.sync)
    good = mpi_file_sync(&file);
  good = good && mpi_file_has_size(&file, simulation_bytes(simulation)) && mpi_file_close(&file);
  if (!good)
    mpi_file_give_up(&file);
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
  int64_t byte = wrong->first * (int64_t)sizeof(float);
  complain("%s: wrong value at reporting step %lld, byte %lld, of rank %d (all from 0): "
           "expected %.9g, found %.9g; %lld of all values are wrong",
           simulation->options.output, (long long)(byte / simulation->distribution.step_bytes),
           (long long)byte, rank, (double)value_float(wrong->first), wrong->found,
           (long long)count);
}

static void compare_step(const struct simulation *simulation, int step, const float *values,
                         struct mismatches *wrong) {
  int64_t first = first_index(simulation, step), count = floats_of(simulation);
  for (int64_t i = 0; i < count; i++)
    if (values[i] != value_float(first + i))
      mismatches_add(wrong, first + i, (double)values[i]);
}

static bool read_step(const struct simulation *simulation, struct mpi_file *file, float *values) {
  MPI_Status status;
  int count = (int)floats_of(simulation);
  memset(values, 0xff, (size_t)simulation->distribution.block_bytes);
  double start = MPI_Wtime();
  int code = MPI_File_read_all(file->handle, values, count, MPI_FLOAT, &status);
  file->times->read_s += MPI_Wtime() - start;
  return mpi_file_moved(file, &reading, code, &status, MPI_FLOAT, count, "values");
}

static bool read_steps(struct simulation *simulation, struct mpi_file *file) {
  struct mismatches wrong = no_mismatches;
  bool good = mpi_file_has_size(file, simulation_bytes(simulation));
  for (int step = 0; step < simulation->options.rep_steps && good; step++) {
    good = read_step(simulation, file, simulation->buffers[0]);
    double start = MPI_Wtime();
    if (good && simulation->options.verify)
      compare_step(simulation, step, simulation->buffers[0], &wrong);
    simulation->report.verify_s += MPI_Wtime() - start;
  }
  name_mismatches(simulation, &wrong);
  return good;
}

static bool read_report(struct simulation *simulation, struct io_times *times) {
  struct mpi_file file = file_of(simulation, times);
  if (!mpi_file_open(&file) || !set_view(simulation, &file))
    return false;
  bool good = read_steps(simulation, &file) && mpi_file_close(&file);
  if (!good)
    mpi_file_give_up(&file);
  return good;
}

static bool verify_report(struct simulation *simulation) {
  struct io_times not_reported = {0};
  double start = MPI_Wtime();
  bool good = read_report(simulation, &not_reported);
  simulation->report.verify_s = MPI_Wtime() - start;
  return good;
}

bool simulation_run(struct simulation *simulation) {
  if (simulation->options.read) {
    simulation->report.calls = simulation->options.rep_steps;
    return read_report(simulation, &simulation->report.io);
  }
  return write_report(simulation) && (!simulation->options.verify || verify_report(simulation));
}
