/* simple: no collective call, no derived type; one independent MPI-IO call for every row of points
 * along x of every cell. The order of cells and rows is that of NAS BTIO. */
#include "mpi_variant.h"
#include "variants.h"

#include <stddef.h>

static const struct attempt writing = {"MPI_File_write_at", hint_out_of_space};
static const struct attempt reading = {"MPI_File_read_at", ""};

static bool create(struct dump_file *file) {
  return mpi_variant_create(file, MPI_DOUBLE, MPI_DOUBLE, MPI_INFO_NULL);
}

static bool open_existing(struct dump_file *file) {
  return mpi_variant_open(file, MPI_DOUBLE, MPI_DOUBLE);
}

struct transfer {
  struct dump_file *file;
  int64_t first_point; /* of the dump, in the file */
  const double *source;
  double *target;
  const char *fault; /* of the first call that failed; no further one is made */
  char room[MPI_FAULT_BYTES_MAX];
};

static void move_row(const struct row *row, void *context) {
  struct transfer *transfer = context;
  if (transfer->fault != NULL)
    return;
  MPI_File handle = transfer->file->mpi.handle;
  MPI_Offset offset = (transfer->first_point + row->grid_point) * COMPONENTS;
  size_t at = row->buffer_point * COMPONENTS;
  int code, count = row->length * COMPONENTS;
  MPI_Status status;
  if (transfer->source != NULL)
    code = MPI_File_write_at(handle, offset, transfer->source + at, count, MPI_DOUBLE, &status);
  else
    code = MPI_File_read_at(handle, offset, transfer->target + at, count, MPI_DOUBLE, &status);
  transfer->file->calls++;
  transfer->fault = mpi_file_fault(code, &status, MPI_DOUBLE, count, "values", transfer->room);
}

/* Moves all rows and returns the seconds it took. */
static double move_rows(struct transfer *transfer, int dump) {
  const struct partition *partition = transfer->file->partition;
  const int *grid = partition->grid;
  transfer->first_point = (int64_t)dump * grid[0] * grid[1] * grid[2];
  double start = MPI_Wtime();
  partition_each_row(partition, move_row, transfer);
  return MPI_Wtime() - start;
}

static bool write_rows(struct dump_file *file, int dump, const double *values) {
  struct transfer transfer = {.file = file, .source = values};
  file->times->write_s += move_rows(&transfer, dump);
  return attempt_agreed(file->comm, file->path, &writing, transfer.fault);
}

static bool read_rows(struct dump_file *file, int dump, double *values) {
  struct transfer transfer = {.file = file, .target = values};
  file->times->read_s += move_rows(&transfer, dump);
  return attempt_agreed(file->comm, file->path, &reading, transfer.fault);
}

const struct variant variant_simple = {
    .name = "simple",
    .file_name = "btio.simple.out",
    .create = create,
    .open = open_existing,
    .write = write_rows,
    .read = read_rows,
    .sync = mpi_variant_sync,
    .close = mpi_variant_close,
    .give_up = mpi_variant_give_up,
};
