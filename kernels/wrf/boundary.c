#include "boundary.h"

#include "harness/values.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIDES = 8, RANK_MAX = 4 };

static const char *const fields[] = {"U", "V", "T", "PH", "QVAPOR", "MU"};
static const char *const sides[SIDES] = {"BXS",  "BXE",  "BYS",  "BYE",
                                         "BTXS", "BTXE", "BTYS", "BTYE"};

static void variable_name(int variable, char name[24]) {
  snprintf(name, 24, "%s_%s", fields[variable / SIDES], sides[variable % SIDES]);
}

/* The last field, MU, is of the surface: it has no levels. */
static bool is_flat(int variable) { return variable / SIDES == 5; }

static int levels_of(const struct boundary *boundary, int variable) {
  return is_flat(variable) ? 1 : boundary->domain->size[LEVELS];
}

/* A west or east side runs along north, a south or north side along east. */
static int direction_of(int variable) { return variable % 4 < 2 ? NORTH : EAST; }

static int64_t index_of(const struct boundary *boundary, int record, int variable, int row,
                        int level) {
  const int *size = boundary->domain->size;
  int64_t side = size[NORTH] > size[EAST] ? size[NORTH] : size[EAST];
  int64_t rows = ((int64_t)record * BOUNDARY_VARIABLES + variable) * BOUNDARY_WIDTH + row;
  return (rows * size[LEVELS] + level) * side;
}

static int define(const struct boundary *boundary, struct dataset *file) {
  const int *size = boundary->domain->size;
  int id = file->id, time, width, levels, along[DIRECTIONS], text[2], made, code;
  char name[24];
  ncmpi_def_dim(id, "Time", NC_UNLIMITED, &time);
  ncmpi_def_dim(id, "DateStrLen", DATE_BYTES, &text[1]);
  ncmpi_def_dim(id, "west_east", size[EAST], &along[EAST]);
  ncmpi_def_dim(id, "south_north", size[NORTH], &along[NORTH]);
  ncmpi_def_dim(id, "bottom_top", size[LEVELS], &levels);
  ncmpi_def_dim(id, "bdy_width", BOUNDARY_WIDTH, &width);
  text[0] = time;
  code = ncmpi_def_var(id, "Times", NC_CHAR, 2, text, &file->first_variable);
  for (int variable = 0; variable < BOUNDARY_VARIABLES && code == NC_NOERR; variable++) {
    int side = along[direction_of(variable)];
    int deep[] = {time, width, levels, side}, flat[] = {time, width, side};
    variable_name(variable, name);
    code = ncmpi_def_var(id, name, NC_FLOAT, is_flat(variable) ? 3 : 4,
                         is_flat(variable) ? flat : deep, &made);
  }
  return code;
}

/* The part of a variable from (row, level) on along this rank's patch. */
static void region_of(const struct boundary *boundary, int record, int variable, int row, int level,
                      MPI_Offset start[RANK_MAX]) {
  MPI_Offset low = boundary->domain->low[direction_of(variable)];
  start[0] = record;
  start[1] = row;
  start[2] = is_flat(variable) ? low : level;
  start[3] = low;
}

/* One rank of those that share a stretch of a side writes it. */
static bool writes(const struct boundary *boundary, int variable) {
  return boundary->domain->low[direction_of(variable) == NORTH ? EAST : NORTH] == 0;
}

static void write_variable(const struct boundary *boundary, struct dataset *file, int record,
                           int variable, float *room) {
  int along = boundary->domain->count[direction_of(variable)];
  int low = boundary->domain->low[direction_of(variable)], levels = levels_of(boundary, variable);
  MPI_Offset start[RANK_MAX], count[RANK_MAX] = {1, BOUNDARY_WIDTH, levels, along};
  float *next = room;
  for (int row = 0; row < BOUNDARY_WIDTH; row++)
    for (int level = 0; level < levels; level++)
      for (int i = 0; i < along; i++)
        *next++ = value_float(index_of(boundary, record, variable, row, level) + low + i);
  region_of(boundary, record, variable, 0, 0, start);
  if (is_flat(variable))
    count[2] = along;
  if (!writes(boundary, variable))
    for (int i = 0; i < RANK_MAX; i++)
      count[i] = 0;
  dataset_put(file, file->first_variable + 1 + variable, start, count, room);
}

bool boundary_write(const struct boundary *boundary, struct dataset *file) {
  static const char date[DATE_BYTES + 1] = "2000-01-01_00:00:00";
  const int *count = boundary->domain->count;
  size_t along = (size_t)(count[NORTH] > count[EAST] ? count[NORTH] : count[EAST]);
  float *room = malloc(BOUNDARY_WIDTH * (size_t)count[LEVELS] * along * sizeof *room);
  if (!attempt_memory(file->comm, room != NULL, "a side of the grid", "use a smaller grid") ||
      !dataset_create(file)) {
    free(room);
    return false;
  }
  double begin = MPI_Wtime();
  file->fault = define(boundary, file);
  file->times->open_s += MPI_Wtime() - begin;
  file->records = boundary->records;
  bool good = dataset_define_end(file);
  for (int record = 0; record < boundary->records && good; record++) {
    dataset_put_date(file, file->first_variable, record, date);
    for (int variable = 0; variable < BOUNDARY_VARIABLES; variable++)
      write_variable(boundary, file, record, variable, room);
    good = dataset_wrote(file);
  }
  free(room);
  good = good && (!boundary->options->sync || dataset_sync(file)) && dataset_close_written(file);
  if (!good)
    dataset_give_up(file);
  return good;
}

static void read_variable(const struct boundary *boundary, struct dataset *file, int record,
                          int variable, int id, struct mismatches *wrong) {
  int along = boundary->domain->count[direction_of(variable)];
  int low = boundary->domain->low[direction_of(variable)];
  MPI_Offset start[RANK_MAX], count[RANK_MAX] = {1, 1, is_flat(variable) ? along : 1, along};
  float *values = boundary->domain->values;
  for (int row = 0; row < BOUNDARY_WIDTH; row++)
    for (int level = 0; level < levels_of(boundary, variable); level++) {
      region_of(boundary, record, variable, row, level, start);
      dataset_get(file, id, start, count, values);
      int64_t first = index_of(boundary, record, variable, row, level) + low;
      for (int i = 0; i < along && wrong != NULL && file->fault == NC_NOERR; i++)
        if (values[i] != value_float(first + i))
          mismatches_add(wrong, first + i, (double)values[i]);
    }
}

bool boundary_read(const struct boundary *boundary, struct dataset *file, int record,
                   struct mismatches *wrong) {
  char name[24];
  for (int variable = 0; variable < BOUNDARY_VARIABLES; variable++) {
    int id = -1;
    variable_name(variable, name);
    int code = ncmpi_inq_varid(file->id, name, &id);
    if (code != NC_NOERR) {
      file->fault = code;
      break; /* on all ranks alike: the header is the same */
    }
    read_variable(boundary, file, record, variable, id, wrong);
  }
  return dataset_read_all(file);
}

void boundary_place(const struct boundary *boundary, int64_t index, char place[PLACE_BYTES_MAX]) {
  int64_t side = index_of(boundary, 0, 0, 0, 1), levels = boundary->domain->size[LEVELS];
  int64_t line = index / side, row = line / levels, variable = row / BOUNDARY_WIDTH;
  char name[24];
  variable_name((int)(variable % BOUNDARY_VARIABLES), name);
  snprintf(place, PLACE_BYTES_MAX, "%s, record %lld, row %lld, level %lld, point %lld", name,
           (long long)(variable / BOUNDARY_VARIABLES), (long long)(row % BOUNDARY_WIDTH),
           (long long)(line % levels), (long long)(index % side));
}
