#include "dataset.h"

#include "harness/mpi_file.h"
#include "harness/stored_file.h"

#include <stdio.h>

enum { FAULT_BYTES_MAX = 96 };

static const struct attempt creating = {"ncmpi_create", hint_no_place};
static const struct attempt defining = {"ncmpi_enddef", hint_out_of_space};
static const struct attempt opening = {
    "ncmpi_open", "\nhint: wrf --prepare makes wrfinput and wrfbdy, a run makes the others"};
static const struct attempt inquiring = {"ncmpi_inq_dimlen",
                                         "\nhint: was it made with the same --nx, --ny and --nz?"};
static const struct attempt writing = {"ncmpi_put_vara_float_all", hint_out_of_space};
static const struct attempt reading = {
    "ncmpi_get_vara_float_all", "\nhint: was it made with the same grid, variables and steps?"};
static const struct attempt syncing = {"ncmpi_sync", hint_out_of_space};
static const struct attempt closing = {"ncmpi_close", hint_out_of_space};

static bool agreed(const struct dataset *file, const struct attempt *attempt, int code) {
  return netcdf_succeeded(file->comm, file->path, attempt, code);
}

static void note(struct dataset *file, int code) {
  if (file->fault == NC_NOERR)
    file->fault = code;
}

bool dataset_create(struct dataset *file) {
  if (!mpi_file_delete(file->comm, file->path))
    return false;
  double start = MPI_Wtime();
  int code =
      ncmpi_create(file->comm, file->path, NC_CLOBBER | NC_64BIT_OFFSET, MPI_INFO_NULL, &file->id);
  file->times->open_s += MPI_Wtime() - start;
  return agreed(file, &creating, code);
}

bool dataset_define_end(struct dataset *file) {
  double start = MPI_Wtime();
  note(file, ncmpi_enddef(file->id));
  file->times->open_s += MPI_Wtime() - start;
  return agreed(file, &defining, file->fault);
}

/* NULL, or what is different from what the options say. */
static const char *grid_fault(const struct dataset *file, const struct domain *domain,
                              char room[FAULT_BYTES_MAX]) {
  static const char *const names[] = {"bottom_top", "south_north", "west_east"};
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    MPI_Offset length;
    int id, code = ncmpi_inq_dimid(file->id, names[direction], &id);
    if (code == NC_NOERR)
      code = ncmpi_inq_dimlen(file->id, id, &length);
    if (code != NC_NOERR)
      return ncmpi_strerror(code);
    snprintf(room, FAULT_BYTES_MAX, "%s is %lld, %d expected", names[direction], (long long)length,
             domain->size[direction]);
    if (length != domain->size[direction])
      return room;
  }
  return NULL;
}

/* All variables are of records, "Times" is the first one. */
static int64_t end_of(const struct dataset *file) {
  MPI_Offset begin = 0, record = 0;
  ncmpi_inq_varoffset(file->id, file->first_variable, &begin);
  ncmpi_inq_recsize(file->id, &record);
  return begin + record * file->records;
}

static int records_in(const struct dataset *file) {
  int id = -1;
  MPI_Offset records = 0;
  ncmpi_inq_unlimdim(file->id, &id);
  ncmpi_inq_dimlen(file->id, id, &records);
  return (int)records;
}

bool dataset_open(struct dataset *file, const struct domain *domain) {
  char room[FAULT_BYTES_MAX];
  double start = MPI_Wtime();
  int code = ncmpi_open(file->comm, file->path, NC_NOWRITE, MPI_INFO_NULL, &file->id);
  file->times->open_s += MPI_Wtime() - start;
  if (!agreed(file, &opening, code))
    return false;
  file->records = records_in(file);
  if (attempt_agreed(file->comm, file->path, &inquiring, grid_fault(file, domain, room)) &&
      stored_file_check_size(file->comm, file->path, end_of(file)))
    return true;
  dataset_give_up(file);
  return false;
}

static int64_t floats_in(const struct dataset *file, int variable, const MPI_Offset *count) {
  int dimensions = 0;
  int64_t floats = 1;
  ncmpi_inq_varndims(file->id, variable, &dimensions);
  for (int i = 0; i < dimensions; i++)
    floats *= count[i];
  return floats;
}

void dataset_put(struct dataset *file, int variable, const MPI_Offset *start,
                 const MPI_Offset *count, const float *values) {
  double begin = MPI_Wtime();
  note(file, ncmpi_put_vara_float_all(file->id, variable, start, count, values));
  file->times->write_s += MPI_Wtime() - begin;
  file->calls++;
  file->bytes += floats_in(file, variable, count) * (int64_t)sizeof(float);
}

void dataset_get(struct dataset *file, int variable, const MPI_Offset *start,
                 const MPI_Offset *count, float *values) {
  double begin = MPI_Wtime();
  note(file, ncmpi_get_vara_float_all(file->id, variable, start, count, values));
  file->times->read_s += MPI_Wtime() - begin;
  file->calls++;
  file->bytes += floats_in(file, variable, count) * (int64_t)sizeof(float);
}

/* Rank 0 has the text; the others take part. It counts as metadata, not as data. */
void dataset_put_date(struct dataset *file, int variable, int record, const char *date) {
  int rank;
  MPI_Comm_rank(file->comm, &rank);
  MPI_Offset start[2] = {record, 0}, count[2] = {rank == 0, rank == 0 ? DATE_BYTES : 0};
  double begin = MPI_Wtime();
  note(file, ncmpi_put_vara_text_all(file->id, variable, start, count, date));
  file->times->write_s += MPI_Wtime() - begin;
}

bool dataset_wrote(struct dataset *file) { return agreed(file, &writing, file->fault); }

bool dataset_read_all(struct dataset *file) { return agreed(file, &reading, file->fault); }

bool dataset_sync(struct dataset *file) {
  double start = MPI_Wtime();
  int code = ncmpi_sync(file->id);
  file->times->sync_s += MPI_Wtime() - start;
  return agreed(file, &syncing, code);
}

bool dataset_close(struct dataset *file) {
  double start = MPI_Wtime();
  int code = ncmpi_close(file->id);
  file->times->close_s += MPI_Wtime() - start;
  return agreed(file, &closing, code);
}

bool dataset_close_written(struct dataset *file) {
  return stored_file_check_size(file->comm, file->path, end_of(file)) && dataset_close(file);
}

void dataset_give_up(struct dataset *file) { ncmpi_abort(file->id); }
