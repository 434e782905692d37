/* fortran: no MPI-IO; every rank opens the same file for Fortran direct access and writes a record
 * of 40 bytes for every point. The order of cells, rows and points is that of NAS BTIO. */
#include "variants.h"

#ifndef HAVE_FORTRAN

const struct variant variant_fortran = {.name = "fortran",
                                        .needs = "a Fortran compiler",
                                        .package = "gfortran",
                                        .file_name = "btio.fortran.out"};

#else

#include "harness/stored_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { FAULT_BYTES_MAX = 512 };

/* direct.f90. Each returns 0, or fills `message` with the run-time library's own words. */
int btio_direct_open(const char *path, int length, int writing, int *unit, int room, char *message);
int btio_direct_write(int unit, int64_t first_record, int points, const double *values, int room,
                      char *message);
int btio_direct_read(int unit, int64_t first_record, int points, double *values, int room,
                     char *message);
int btio_direct_flush(int unit, int room, char *message);
int btio_direct_close(int unit, int room, char *message);

static const struct attempt creating = {"Fortran open", hint_no_place};
static const struct attempt opening = {
    "Fortran open", "\nhint: what is read must have been written by an earlier run"};
static const struct attempt writing = {"Fortran write", hint_out_of_space};
static const struct attempt reading = {"Fortran read", ""};
static const struct attempt syncing = {"Fortran flush and fsync", hint_out_of_space};
static const struct attempt closing = {"Fortran close", hint_out_of_space};

static bool open_unit(struct dump_file *file, const struct attempt *attempt, bool for_writing) {
  char message[FAULT_BYTES_MAX];
  file->writing = for_writing;
  double start = MPI_Wtime();
  int status = btio_direct_open(file->path, (int)strlen(file->path), for_writing,
                                &file->fortran.unit, sizeof message, message);
  file->times->open_s += MPI_Wtime() - start;
  file->fortran.open = status == 0;
  return attempt_agreed(file->comm, file->path, attempt, status == 0 ? NULL : message);
}

static void give_up(struct dump_file *file) {
  char message[FAULT_BYTES_MAX];
  if (file->fortran.open)
    btio_direct_close(file->fortran.unit, sizeof message, message);
  file->fortran.open = false;
}

static bool create(struct dump_file *file) {
  if (!mpi_file_delete(file->comm, file->path))
    return false;
  if (open_unit(file, &creating, true))
    return true;
  give_up(file);
  return false;
}

static bool open_existing(struct dump_file *file) {
  if (open_unit(file, &opening, false) &&
      stored_file_check_size(file->comm, file->path, dump_file_bytes(file)))
    return true;
  give_up(file);
  return false;
}

struct transfer {
  struct dump_file *file;
  int64_t first_point; /* of the dump, in the file */
  const double *source;
  double *target;
  bool failed; /* no further row is moved */
  char fault[FAULT_BYTES_MAX];
};

static void move_row(const struct row *row, void *context) {
  struct transfer *transfer = context;
  if (transfer->failed)
    return;
  int unit = transfer->file->fortran.unit, status;
  int64_t record = transfer->first_point + row->grid_point + 1;
  size_t at = row->buffer_point * COMPONENTS;
  if (transfer->source != NULL)
    status = btio_direct_write(unit, record, row->length, transfer->source + at,
                               sizeof transfer->fault, transfer->fault);
  else
    status = btio_direct_read(unit, record, row->length, transfer->target + at,
                              sizeof transfer->fault, transfer->fault);
  transfer->file->calls += row->length;
  transfer->failed = status != 0;
}

/* Moves all points and returns the seconds it took. */
static double move_points(struct transfer *transfer, int dump) {
  const struct partition *partition = transfer->file->partition;
  const int *grid = partition->grid;
  transfer->first_point = (int64_t)dump * grid[0] * grid[1] * grid[2];
  double start = MPI_Wtime();
  partition_each_row(partition, move_row, transfer);
  return MPI_Wtime() - start;
}

static bool write_points(struct dump_file *file, int dump, const double *values) {
  struct transfer transfer = {.file = file, .source = values};
  file->times->write_s += move_points(&transfer, dump);
  return attempt_agreed(file->comm, file->path, &writing, transfer.failed ? transfer.fault : NULL);
}

static bool read_points(struct dump_file *file, int dump, double *values) {
  struct transfer transfer = {.file = file, .target = values};
  file->times->read_s += move_points(&transfer, dump);
  return attempt_agreed(file->comm, file->path, &reading, transfer.failed ? transfer.fault : NULL);
}

/* A file has one state on the disk, whichever descriptor syncs it. */
static const char *sync_path(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  const char *fault = descriptor >= 0 && fsync(descriptor) == 0 ? NULL : strerror(errno);
  if (descriptor >= 0)
    close(descriptor);
  return fault;
}

static bool sync_file(struct dump_file *file) {
  char message[FAULT_BYTES_MAX];
  double start = MPI_Wtime();
  int status = btio_direct_flush(file->fortran.unit, sizeof message, message);
  const char *fault = status == 0 ? sync_path(file->path) : message;
  file->times->sync_s += MPI_Wtime() - start;
  return attempt_agreed(file->comm, file->path, &syncing, fault);
}

/* gfortran's library (12) reports no full disk, neither when it writes nor when it closes; what is
 * missing in the file shows it. */
static bool close_file(struct dump_file *file) {
  char message[FAULT_BYTES_MAX];
  double start = MPI_Wtime();
  int status = btio_direct_close(file->fortran.unit, sizeof message, message);
  file->times->close_s += MPI_Wtime() - start;
  file->fortran.open = false;
  return attempt_agreed(file->comm, file->path, &closing, status == 0 ? NULL : message) &&
         (!file->writing || stored_file_check_whole(file->comm, file->path, dump_file_bytes(file)));
}

const struct variant variant_fortran = {
    .name = "fortran",
    .file_name = "btio.fortran.out",
    .create = create,
    .open = open_existing,
    .write = write_points,
    .read = read_points,
    .sync = sync_file,
    .close = close_file,
    .give_up = give_up,
};

#endif
