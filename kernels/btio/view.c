/* full and independent: one MPI-IO call per dump through a file view of all cells of the rank. */
#include "mpi_variant.h"
#include "variants.h"

#include <stdio.h>

static const struct attempt writing_all = {"MPI_File_write_at_all", hint_out_of_space};
static const struct attempt reading_all = {"MPI_File_read_at_all", ""};
static const struct attempt writing_alone = {"MPI_File_write_at", hint_out_of_space};
static const struct attempt reading_alone = {"MPI_File_read_at", ""};

/* The hints of NAS: with the view, not when the file is opened. */
static MPI_Info hints_of(const struct dump_file *file) {
  MPI_Info info = MPI_INFO_NULL;
  char text[16];
  if (file->collbuf_nodes == 0)
    return info;
  MPI_Info_create(&info);
  snprintf(text, sizeof text, "%d", file->collbuf_nodes);
  MPI_Info_set(info, "cb_nodes", text);
  snprintf(text, sizeof text, "%d", file->collbuf_bytes);
  MPI_Info_set(info, "cb_buffer_size", text);
  MPI_Info_set(info, "collective_buffering", "true");
  return info;
}

static bool create(struct dump_file *file) {
  MPI_Info info = hints_of(file);
  bool good = mpi_variant_create(file, file->layout->point, file->layout->file, info);
  if (info != MPI_INFO_NULL)
    MPI_Info_free(&info);
  return good;
}

static bool open_existing(struct dump_file *file) {
  return mpi_variant_open(file, file->layout->point, file->layout->file);
}

typedef int write_call(MPI_File handle, MPI_Offset offset, const void *values, int count,
                       MPI_Datatype type, MPI_Status *status);
typedef int read_call(MPI_File handle, MPI_Offset offset, void *values, int count,
                      MPI_Datatype type, MPI_Status *status);

/* Offsets into the view count the points of this rank, not those of the file. */
static MPI_Offset offset_of(const struct dump_file *file, int dump) {
  return (MPI_Offset)dump * file->partition->points;
}

static bool moved(struct dump_file *file, const struct attempt *attempt, int code,
                  const MPI_Status *status) {
  file->calls++;
  return mpi_file_moved(&file->mpi, attempt, code, status, file->layout->point,
                        (int)file->partition->points, "points");
}

static bool write_by(write_call *call, const struct attempt *attempt, struct dump_file *file,
                     int dump, const double *values) {
  MPI_Status status;
  double start = MPI_Wtime();
  int code =
      call(file->mpi.handle, offset_of(file, dump), values, 1, file->layout->memory, &status);
  file->times->write_s += MPI_Wtime() - start;
  if (code != MPI_SUCCESS)
    mpi_file_drop_locks(&file->mpi);
  return moved(file, attempt, code, &status);
}

static bool read_by(read_call *call, const struct attempt *attempt, struct dump_file *file,
                    int dump, double *values) {
  MPI_Status status;
  double start = MPI_Wtime();
  int code =
      call(file->mpi.handle, offset_of(file, dump), values, 1, file->layout->memory, &status);
  file->times->read_s += MPI_Wtime() - start;
  return moved(file, attempt, code, &status);
}

static bool write_all(struct dump_file *file, int dump, const double *values) {
  return write_by(MPI_File_write_at_all, &writing_all, file, dump, values);
}

static bool read_all(struct dump_file *file, int dump, double *values) {
  return read_by(MPI_File_read_at_all, &reading_all, file, dump, values);
}

static bool write_alone(struct dump_file *file, int dump, const double *values) {
  return write_by(MPI_File_write_at, &writing_alone, file, dump, values);
}

static bool read_alone(struct dump_file *file, int dump, double *values) {
  return read_by(MPI_File_read_at, &reading_alone, file, dump, values);
}

const struct variant variant_full = {
    .name = "full",
    .file_name = "btio.full.out",
    .create = create,
    .open = open_existing,
    .write = write_all,
    .read = read_all,
    .sync = mpi_variant_sync,
    .close = mpi_variant_close,
    .give_up = mpi_variant_give_up,
};

const struct variant variant_independent = {
    .name = "independent",
    .file_name = "btio.full.out", /* the same bytes, so the other can read them */
    .create = create,
    .open = open_existing,
    .write = write_alone,
    .read = read_alone,
    .sync = mpi_variant_sync,
    .close = mpi_variant_close,
    .give_up = mpi_variant_give_up,
};
