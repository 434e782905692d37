/* pnetcdf and pnetcdf-nonblocking: methods 2 and 3 of the deck. One CDF-5 file with one variable,
 * var(NUM_DUMPS, Z, Y, X, FIVE_DBL), whose records are the dumps. */
#include "variants.h"

#ifndef HAVE_PNETCDF

const struct variant variant_pnetcdf = {
    .name = "pnetcdf", .needs = "PnetCDF", .package = "libpnetcdf-dev", .file_name = "btio.nc"};
const struct variant variant_pnetcdf_nonblocking = {.name = "pnetcdf-nonblocking",
                                                    .needs = "PnetCDF",
                                                    .package = "libpnetcdf-dev",
                                                    .file_name = "btio.nc"};

#else

#include "harness/netcdf.h"
#include "harness/stored_file.h"

#include <stdlib.h>

enum { DIMENSIONS = 1 + AXES + 1 };

static const struct attempt creating = {"ncmpi_create", hint_no_place};
static const struct attempt defining = {"ncmpi_enddef", hint_out_of_space};
static const struct attempt opening = {
    "ncmpi_open", "\nhint: what is read must have been written by an earlier run"};
static const struct attempt inquiring = {"ncmpi_inq_var",
                                         "\nhint: was it written with another deck?"};
static const struct attempt putting = {"ncmpi_put_vara_all", hint_out_of_space};
static const struct attempt getting = {"ncmpi_get_vara_all", ""};
static const struct attempt posting_put = {"ncmpi_wait_all after ncmpi_iput_vara",
                                           hint_out_of_space};
static const struct attempt posting_get = {"ncmpi_wait_all after ncmpi_iget_vara", ""};
static const struct attempt syncing = {"ncmpi_sync", hint_out_of_space};
static const struct attempt closing = {"ncmpi_close", hint_out_of_space};

static bool agreed(const struct dump_file *file, const struct attempt *attempt, int code) {
  return netcdf_succeeded(file->comm, file->path, attempt, code);
}

/* The two hints of the published benchmark: the header is not padded, and values are swapped to
 * big-endian in place, if they are in one piece. */
static MPI_Info hints(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "nc_var_align_size", "1");
  MPI_Info_set(info, "nc_in_place_swap", "enable");
  return info;
}

/* Lengths as the file lists them, the slowest first. */
static void shape_of(const struct dump_file *file, MPI_Offset shape[DIMENSIONS]) {
  const int *grid = file->partition->grid;
  MPI_Offset lengths[DIMENSIONS] = {file->dumps, grid[2], grid[1], grid[0], COMPONENTS};
  for (int i = 0; i < DIMENSIONS; i++)
    shape[i] = lengths[i];
}

/* Dimensions get their numbers in the published order, the fastest first. */
static int define(struct dump_file *file) {
  static const char *const names[DIMENSIONS] = {"NUM_DUMPS", "Z", "Y", "X", "FIVE_DBL"};
  int dimensions[DIMENSIONS], code = NC_NOERR, id = file->netcdf.id;
  MPI_Offset shape[DIMENSIONS];
  shape_of(file, shape);
  shape[0] = NC_UNLIMITED;
  for (int i = DIMENSIONS - 1; i >= 0 && code == NC_NOERR; i--)
    code = ncmpi_def_dim(id, names[i], shape[i], &dimensions[i]);
  if (code == NC_NOERR)
    code = ncmpi_def_var(id, "var", NC_DOUBLE, DIMENSIONS, dimensions, &file->netcdf.variable);
  return code == NC_NOERR ? ncmpi_enddef(id) : code;
}

static void give_up(struct dump_file *file) { ncmpi_abort(file->netcdf.id); }

static bool create(struct dump_file *file) {
  file->writing = true;
  if (!mpi_file_delete(file->comm, file->path))
    return false;
  MPI_Info info = hints();
  double start = MPI_Wtime();
  int code =
      ncmpi_create(file->comm, file->path, NC_CLOBBER | NC_64BIT_DATA, info, &file->netcdf.id);
  file->times->open_s += MPI_Wtime() - start;
  MPI_Info_free(&info);
  if (!agreed(file, &creating, code))
    return false;
  start = MPI_Wtime();
  code = define(file);
  file->times->open_s += MPI_Wtime() - start;
  if (agreed(file, &defining, code))
    return true;
  give_up(file);
  return false;
}

/* NULL, or what is different from what the deck says. */
static const char *inquire(struct dump_file *file) {
  int id = file->netcdf.id, count, dimensions[DIMENSIONS];
  MPI_Offset expected[DIMENSIONS], found;
  nc_type type;
  int code = ncmpi_inq_varid(id, "var", &file->netcdf.variable);
  if (code != NC_NOERR)
    return ncmpi_strerror(code);
  ncmpi_inq_vartype(id, file->netcdf.variable, &type);
  ncmpi_inq_varndims(id, file->netcdf.variable, &count);
  if (type != NC_DOUBLE || count != DIMENSIONS)
    return "its variable is not the one of this benchmark";
  ncmpi_inq_vardimid(id, file->netcdf.variable, dimensions);
  shape_of(file, expected);
  for (int i = 0; i < DIMENSIONS; i++) {
    ncmpi_inq_dimlen(id, dimensions[i], &found);
    if (found != expected[i])
      return i == 0 ? "it holds another number of dumps" : "it holds another grid";
  }
  return NULL;
}

/* Not timed: where the file must end, as the header says where the dumps begin. */
static int64_t end_of(const struct dump_file *file) {
  MPI_Offset begin = 0;
  ncmpi_inq_varoffset(file->netcdf.id, file->netcdf.variable, &begin);
  return begin + dump_file_bytes(file);
}

static bool open_existing(struct dump_file *file) {
  MPI_Info info = hints();
  double start = MPI_Wtime();
  int code = ncmpi_open(file->comm, file->path, NC_NOWRITE, info, &file->netcdf.id);
  file->times->open_s += MPI_Wtime() - start;
  MPI_Info_free(&info);
  if (!agreed(file, &opening, code))
    return false;
  if (attempt_agreed(file->comm, file->path, &inquiring, inquire(file)) &&
      stored_file_check_size(file->comm, file->path, end_of(file)))
    return true;
  give_up(file);
  return false;
}

struct region {
  MPI_Offset start[DIMENSIONS], count[DIMENSIONS];
};

static struct region region_of(const struct dump_file *file, int dump, int index) {
  struct region region = {.start = {dump}, .count = {1}};
  const struct cell *cell = &file->partition->cells[index];
  for (int axis = 0; axis < AXES; axis++) {
    region.start[AXES - axis] = cell->low[axis];
    region.count[AXES - axis] = cell->size[axis];
  }
  region.count[DIMENSIONS - 1] = COMPONENTS;
  return region;
}

static int first_fault(int before, int now) { return before != NC_NOERR ? before : now; }

/* Every rank makes all q calls, whatever one of them says: they are collective. */
static int move_cells(struct dump_file *file, int dump, const double *source, double *target) {
  int code = NC_NOERR, id = file->netcdf.id, variable = file->netcdf.variable;
  for (int index = 0; index < file->partition->side; index++) {
    struct region region = region_of(file, dump, index);
    MPI_Datatype type = file->layout->cells[index];
    int now = source != NULL
                  ? ncmpi_put_vara_all(id, variable, region.start, region.count, source, 1, type)
                  : ncmpi_get_vara_all(id, variable, region.start, region.count, target, 1, type);
    code = first_fault(code, now);
    file->calls++;
  }
  return code;
}

/* Posts one request per cell, then one collective call moves them all. */
static int post_and_wait(struct dump_file *file, int dump, const double *source, double *target) {
  int side = file->partition->side, id = file->netcdf.id, variable = file->netcdf.variable;
  int *requests = calloc((size_t)side, sizeof *requests);
  int *states = calloc((size_t)side, sizeof *states);
  if (requests == NULL || states == NULL)
    abort(); /* a few bytes: nothing sensible is left to do */
  int code = NC_NOERR;
  for (int index = 0; index < side; index++) {
    struct region region = region_of(file, dump, index);
    MPI_Datatype type = file->layout->cells[index];
    requests[index] = NC_REQ_NULL;
    code =
        first_fault(code, source != NULL ? ncmpi_iput_vara(id, variable, region.start, region.count,
                                                           source, 1, type, &requests[index])
                                         : ncmpi_iget_vara(id, variable, region.start, region.count,
                                                           target, 1, type, &requests[index]));
  }
  code = first_fault(code, ncmpi_wait_all(id, side, requests, states));
  file->calls++;
  for (int index = 0; index < side; index++)
    code = first_fault(code, states[index]);
  free(states);
  free(requests);
  return code;
}

typedef int cell_mover(struct dump_file *file, int dump, const double *source, double *target);

static bool write_by(cell_mover *move, const struct attempt *attempt, struct dump_file *file,
                     int dump, const double *values) {
  double start = MPI_Wtime();
  int code = move(file, dump, values, NULL);
  file->times->write_s += MPI_Wtime() - start;
  return agreed(file, attempt, code);
}

static bool read_by(cell_mover *move, const struct attempt *attempt, struct dump_file *file,
                    int dump, double *values) {
  double start = MPI_Wtime();
  int code = move(file, dump, NULL, values);
  file->times->read_s += MPI_Wtime() - start;
  return agreed(file, attempt, code);
}

static bool put_cells(struct dump_file *file, int dump, const double *values) {
  return write_by(move_cells, &putting, file, dump, values);
}

static bool get_cells(struct dump_file *file, int dump, double *values) {
  return read_by(move_cells, &getting, file, dump, values);
}

static bool iput_cells(struct dump_file *file, int dump, const double *values) {
  return write_by(post_and_wait, &posting_put, file, dump, values);
}

static bool iget_cells(struct dump_file *file, int dump, double *values) {
  return read_by(post_and_wait, &posting_get, file, dump, values);
}

static bool sync_file(struct dump_file *file) {
  double start = MPI_Wtime();
  int code = ncmpi_sync(file->netcdf.id);
  file->times->sync_s += MPI_Wtime() - start;
  return agreed(file, &syncing, code);
}

static bool close_file(struct dump_file *file) {
  int64_t end = end_of(file);
  if (file->writing && !stored_file_check_size(file->comm, file->path, end))
    return false;
  double start = MPI_Wtime();
  int code = ncmpi_close(file->netcdf.id);
  file->times->close_s += MPI_Wtime() - start;
  return agreed(file, &closing, code);
}

const struct variant variant_pnetcdf = {
    .name = "pnetcdf",
    .file_name = "btio.nc",
    .create = create,
    .open = open_existing,
    .write = put_cells,
    .read = get_cells,
    .sync = sync_file,
    .close = close_file,
    .give_up = give_up,
};

const struct variant variant_pnetcdf_nonblocking = {
    .name = "pnetcdf-nonblocking",
    .file_name = "btio.nc",
    .create = create,
    .open = open_existing,
    .write = iput_cells,
    .read = iget_cells,
    .sync = sync_file,
    .close = close_file,
    .give_up = give_up,
};

#endif
