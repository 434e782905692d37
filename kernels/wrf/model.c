#include "model.h"

#include "boundary.h"
#include "harness/message.h"
#include "harness/pause.h"
#include "state.h"

#include <stdio.h>
#include <time.h>

static struct dataset file_of(struct model *model, struct io_times *times, const char *name) {
  struct dataset file = {.comm = model->domain.comm, .times = times, .fault = NC_NOERR};
  snprintf(file.path, sizeof file.path, "%s/%s", model->options.directory, name);
  return file;
}

static void count(struct model *model, const struct dataset *file) {
  model->report.calls += file->calls;
  model->bytes += file->bytes;
  model->files++;
}

/* A step is an hour, from the first of January 2000 on. */
static void date_of(int step, char date[DATE_BYTES + 1]) {
  time_t seconds = (time_t)946684800 + (time_t)step * 3600;
  struct tm parts;
  gmtime_r(&seconds, &parts);
  strftime(date, DATE_BYTES + 1, "%Y-%m-%d_%H:%M:%S", &parts);
}

/* The three kinds of file of one form. */
enum kind { INPUT, HISTORY, RESTART };

static struct state state_of(struct model *model, enum kind kind, int step, const char *date) {
  return (struct state){.options = &model->options,
                        .domain = &model->domain,
                        .date = date,
                        .number = kind == INPUT ? 0 : 2 * (int64_t)step + (kind == RESTART)};
}

static void name_of(enum kind kind, const char *date, char name[64]) {
  static const char *const kinds[] = {"wrfinput_d01", "wrfout_d01_", "wrfrst_d01_"};
  snprintf(name, 64, "%s%s", kinds[kind], kind == INPUT ? "" : date);
  for (char *next = name; *next != '\0'; next++)
    if (*next == ':')
      *next = '_'; /* as with WRF's nocolons */
}

static bool write_state(struct model *model, enum kind kind, int step) {
  char date[DATE_BYTES + 1], name[64];
  date_of(step, date);
  name_of(kind, date, name);
  struct dataset file = file_of(model, &model->report.io, name);
  struct state state = state_of(model, kind, step, date);
  bool good = state_write(&state, &file, &model->report.compute_s);
  count(model, &file);
  return good;
}

static void name_mismatches(struct model *model, const struct dataset *file,
                            const struct mismatches *wrong, const char *place) {
  bool names_it;
  int64_t found = mismatches_join(model->domain.comm, wrong, &names_it);
  model->report.mismatches += found;
  if (names_it)
    complain("%s: wrong value in %s (all from 0): found %.9g; %lld of its values are wrong",
             file->path, place, wrong->found, (long long)found);
}

/* Reads a file in the run's own time, or in that of --verify. */
static bool read_state(struct model *model, enum kind kind, int step, bool verifying) {
  struct io_times not_reported = {0};
  struct mismatches wrong = no_mismatches;
  char date[DATE_BYTES + 1], name[64], place[PLACE_BYTES_MAX] = "";
  date_of(step, date);
  name_of(kind, date, name);
  struct dataset file = file_of(model, verifying ? &not_reported : &model->report.io, name);
  struct state state = state_of(model, kind, step, date);
  double compare_s = 0, start = MPI_Wtime();
  bool good = state_read(&state, &file, model->options.verify ? &wrong : NULL, &compare_s);
  if (!verifying)
    count(model, &file);
  if (wrong.count > 0)
    state_place(&state, wrong.first, place, sizeof place);
  name_mismatches(model, &file, &wrong, place);
  model->report.verify_s += verifying ? MPI_Wtime() - start : compare_s;
  return good;
}

/* Calls visit for all that is written after the steps from `first` to `last`. */
static bool each_output(struct model *model, int first, int last,
                        bool (*visit)(struct model *model, enum kind kind, int step)) {
  const struct options *options = &model->options;
  bool good = true;
  for (int step = first; step <= last && good; step++) {
    if (step % options->history == 0)
      good = visit(model, HISTORY, step);
    if (good && options->restart > 0 && step % options->restart == 0)
      good = visit(model, RESTART, step);
  }
  return good;
}

static struct boundary boundary_of(struct model *model) {
  return (struct boundary){.options = &model->options,
                           .domain = &model->domain,
                           .records = (model->options.steps - 1) / model->options.boundary + 1};
}

static bool prepare(struct model *model) {
  struct boundary boundary = boundary_of(model);
  struct dataset file = file_of(model, &model->report.io, "wrfbdy_d01");
  if (!write_state(model, INPUT, 0))
    return false;
  bool good = boundary_write(&boundary, &file);
  count(model, &file);
  return good;
}

static void work(struct model *model) {
  double start = MPI_Wtime();
  pause_until(start + model->options.time_ms / 1e3);
  model->report.compute_s += MPI_Wtime() - start;
}

static bool take_steps(struct model *model, const struct boundary *boundary, struct dataset *sides,
                       struct mismatches *wrong) {
  const struct options *options = &model->options;
  bool good = true;
  for (int step = 0; step < options->steps && good; step++) {
    if (step % options->boundary == 0)
      good =
          boundary_read(boundary, sides, step / options->boundary, options->verify ? wrong : NULL);
    work(model);
    good = good && each_output(model, step + 1, step + 1, write_state);
  }
  return good;
}

static void name_boundary_mismatches(struct model *model, const struct dataset *sides,
                                     const struct mismatches *wrong) {
  struct boundary boundary = boundary_of(model);
  char place[PLACE_BYTES_MAX] = "";
  if (wrong->count > 0)
    boundary_place(&boundary, wrong->first, place);
  name_mismatches(model, sides, wrong, place);
}

static bool simulate(struct model *model) {
  struct boundary boundary = boundary_of(model);
  struct dataset sides = file_of(model, &model->report.io, "wrfbdy_d01");
  struct mismatches wrong = no_mismatches;
  if (!read_state(model, INPUT, 0, false) || !dataset_open(&sides, &model->domain))
    return false;
  bool good = take_steps(model, &boundary, &sides, &wrong) && dataset_close(&sides);
  if (!good)
    dataset_give_up(&sides);
  count(model, &sides);
  name_boundary_mismatches(model, &sides, &wrong);
  return good;
}

static bool verify_boundary(struct model *model) {
  struct io_times not_reported = {0};
  struct boundary boundary = boundary_of(model);
  struct dataset sides = file_of(model, &not_reported, "wrfbdy_d01");
  struct mismatches wrong = no_mismatches;
  double start = MPI_Wtime();
  if (!dataset_open(&sides, &model->domain))
    return false;
  bool good = true;
  for (int record = 0; record < boundary.records && good; record++)
    good = boundary_read(&boundary, &sides, record, &wrong);
  good = good && dataset_close(&sides);
  if (!good)
    dataset_give_up(&sides);
  name_boundary_mismatches(model, &sides, &wrong);
  model->report.verify_s += MPI_Wtime() - start;
  return good;
}

static bool read_in_time(struct model *model, enum kind kind, int step) {
  return read_state(model, kind, step, false);
}

static bool verify(struct model *model, enum kind kind, int step) {
  return read_state(model, kind, step, true);
}

bool model_run(struct model *model) {
  const struct options *options = &model->options;
  if (options->prepare)
    return prepare(model) &&
           (!options->verify || (verify(model, INPUT, 0) && verify_boundary(model)));
  if (options->read)
    return each_output(model, 1, options->steps, read_in_time);
  return simulate(model) && (!options->verify || each_output(model, 1, options->steps, verify));
}
