#include "state.h"

#include "harness/values.h"

#include <stdio.h>
#include <string.h>

enum { RANK_MAX = 4 };

static bool is_3d(int variable) { return variable % 5 < 2; }

static void variable_name(int variable, char name[24]) {
  snprintf(name, 24, "VAR%s_%04d", is_3d(variable) ? "3D" : "2D", variable);
}

static int define_variable(int id, int variable, const int dimensions[RANK_MAX]) {
  /* dimensions: Time, bottom_top, south_north, west_east */
  int flat[] = {dimensions[0], dimensions[2], dimensions[3]}, made;
  char name[24];
  variable_name(variable, name);
  int code = is_3d(variable) ? ncmpi_def_var(id, name, NC_FLOAT, 4, dimensions, &made)
                             : ncmpi_def_var(id, name, NC_FLOAT, 3, flat, &made);
  const char *order = is_3d(variable) ? "XYZ" : "XY ";
  if (code == NC_NOERR)
    code = ncmpi_put_att_text(id, made, "MemoryOrder", 3, order);
  return code;
}

static int define(const struct state *state, struct dataset *file) {
  static const char title[] = "OUTPUT OF AN I/O KERNEL, NOT OF A WEATHER MODEL";
  const int *size = state->domain->size;
  int id = file->id, dimensions[RANK_MAX], text[2], code = NC_NOERR;
  ncmpi_def_dim(id, "Time", NC_UNLIMITED, &dimensions[0]);
  ncmpi_def_dim(id, "DateStrLen", DATE_BYTES, &text[1]);
  ncmpi_def_dim(id, "west_east", size[EAST], &dimensions[3]);
  ncmpi_def_dim(id, "south_north", size[NORTH], &dimensions[2]);
  ncmpi_def_dim(id, "bottom_top", size[LEVELS], &dimensions[1]);
  ncmpi_put_att_text(id, NC_GLOBAL, "TITLE", (MPI_Offset)strlen(title), title);
  text[0] = dimensions[0];
  code = ncmpi_def_var(id, "Times", NC_CHAR, 2, text, &file->first_variable);
  for (int variable = 0; variable < state->options->variables && code == NC_NOERR; variable++)
    code = define_variable(id, variable, dimensions);
  return code;
}

/* The patch in a variable, which has no levels if it is 2-D. Returns the values in it. */
static int64_t region_of(const struct domain *domain, int variable, MPI_Offset start[RANK_MAX],
                         MPI_Offset count[RANK_MAX]) {
  int next = 0;
  int64_t values = 1;
  start[next] = 0;
  count[next++] = 1;
  for (int direction = is_3d(variable) ? LEVELS : NORTH; direction < DIRECTIONS; direction++) {
    start[next] = domain->low[direction];
    count[next++] = domain->count[direction];
    values *= domain->count[direction];
  }
  return values;
}

/* Calls visit for every value of the patch with its index over the whole run. */
static void each_value(const struct state *state, int variable,
                       void (*visit)(float *value, int64_t index, struct mismatches *wrong),
                       struct mismatches *wrong) {
  const struct domain *domain = state->domain;
  int64_t first = (state->number * state->options->variables + variable) * domain->points;
  int levels = is_3d(variable) ? domain->count[LEVELS] : 1;
  float *value = domain->values;
  for (int z = 0; z < levels; z++)
    for (int y = 0; y < domain->count[NORTH]; y++) {
      int64_t line = (int64_t)z * domain->size[NORTH] + domain->low[NORTH] + y;
      int64_t point = line * domain->size[EAST] + domain->low[EAST];
      for (int x = 0; x < domain->count[EAST]; x++)
        visit(value++, first + point + x, wrong);
    }
}

static void fill(float *value, int64_t index, struct mismatches *wrong) {
  (void)wrong;
  *value = value_float(index);
}

static void compare(float *value, int64_t index, struct mismatches *wrong) {
  if (*value != value_float(index))
    mismatches_add(wrong, index, (double)*value);
}

bool state_write(const struct state *state, struct dataset *file, double *fill_s) {
  MPI_Offset start[RANK_MAX], count[RANK_MAX];
  if (!dataset_create(file))
    return false;
  double begin = MPI_Wtime();
  file->fault = define(state, file);
  file->times->open_s += MPI_Wtime() - begin;
  file->records = 1;
  bool good = dataset_define_end(file);
  if (good)
    dataset_put_date(file, file->first_variable, 0, state->date);
  for (int variable = 0; variable < state->options->variables && good; variable++) {
    begin = MPI_Wtime();
    each_value(state, variable, fill, NULL);
    *fill_s += MPI_Wtime() - begin;
    region_of(state->domain, variable, start, count);
    dataset_put(file, file->first_variable + 1 + variable, start, count, state->domain->values);
  }
  good = good && dataset_wrote(file) && (!state->options->sync || dataset_sync(file)) &&
         dataset_close_written(file);
  if (!good)
    dataset_give_up(file);
  return good;
}

/* The identity of a variable, or -1 with the fault kept. */
static int find(struct dataset *file, int variable) {
  char name[24];
  int id = -1;
  variable_name(variable, name);
  int code = ncmpi_inq_varid(file->id, name, &id);
  if (code != NC_NOERR && file->fault == NC_NOERR)
    file->fault = code;
  return id;
}

bool state_read(const struct state *state, struct dataset *file, struct mismatches *wrong,
                double *compare_s) {
  MPI_Offset start[RANK_MAX], count[RANK_MAX];
  if (!dataset_open(file, state->domain))
    return false;
  for (int variable = 0; variable < state->options->variables; variable++) {
    int id = find(file, variable);
    if (id < 0)
      break; /* on all ranks alike: the header is the same */
    int64_t values = region_of(state->domain, variable, start, count);
    memset(state->domain->values, 0xff, (size_t)values * sizeof(float));
    dataset_get(file, id, start, count, state->domain->values);
    double begin = MPI_Wtime();
    if (wrong != NULL && file->fault == NC_NOERR)
      each_value(state, variable, compare, wrong);
    *compare_s += MPI_Wtime() - begin;
  }
  bool good = dataset_read_all(file) && dataset_close(file);
  if (!good)
    dataset_give_up(file);
  return good;
}

void state_place(const struct state *state, int64_t index, char *place, size_t bytes) {
  const struct domain *domain = state->domain;
  int64_t point = index % domain->points, line = point / domain->size[EAST];
  char name[24];
  variable_name((int)(index / domain->points % state->options->variables), name);
  snprintf(place, bytes, "%s, level %lld, south_north %lld, west_east %lld", name,
           (long long)(line / domain->size[NORTH]), (long long)(line % domain->size[NORTH]),
           (long long)(point % domain->size[EAST]));
}
