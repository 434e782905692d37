/* The report as MPI-IO writes it: the steps one after the other, nothing else in the file. */
#include "report_file.h"

#include <stdlib.h>

static const struct attempt writing = {"MPI_File_write_all", hint_out_of_space};
static const struct attempt reading = {"MPI_File_read_all", ""};

/* The runs of a rank in a step; the extent is the whole step, so that the file view repeats. */
static MPI_Datatype view_of(const struct distribution_of_rank *distribution) {
  size_t count = (size_t)distribution->run_count;
  int *lengths = malloc(count * sizeof *lengths);
  MPI_Aint *offsets = malloc(count * sizeof *offsets);
  if (lengths == NULL || offsets == NULL)
    abort(); /* less than the runs themselves */
  for (size_t i = 0; i < count; i++) {
    lengths[i] = (int)(distribution->runs[i].count * (int64_t)sizeof(float));
    offsets[i] = (MPI_Aint)(distribution->runs[i].first * (int64_t)sizeof(float));
  }
  MPI_Datatype runs, step;
  MPI_Type_create_hindexed((int)count, lengths, offsets, MPI_BYTE, &runs);
  MPI_Type_create_resized(runs, 0, (MPI_Aint)(distribution->step_values * (int64_t)sizeof(float)),
                          &step);
  MPI_Type_commit(&step);
  MPI_Type_free(&runs);
  free(offsets);
  free(lengths);
  return step;
}

static bool set_view(struct report_file *file) {
  MPI_Datatype view = view_of(file->distribution);
  bool good = mpi_file_set_view(&file->mpi, MPI_BYTE, view, MPI_INFO_NULL);
  MPI_Type_free(&view);
  return good;
}

static void prepare(struct report_file *file) {
  file->mpi = (struct mpi_file){
      .comm = file->comm, .path = file->path, .times = file->times, .handle = MPI_FILE_NULL};
}

static bool create(struct report_file *file) {
  prepare(file);
  return mpi_file_create(&file->mpi, MPI_MODE_WRONLY) && set_view(file);
}

static bool open_existing(struct report_file *file) {
  prepare(file);
  if (!mpi_file_open(&file->mpi) || !set_view(file))
    return false;
  if (mpi_file_check_size(&file->mpi, report_file_bytes(file)))
    return true;
  mpi_file_give_up(&file->mpi);
  return false;
}

/* The view has the places of the steps: each call continues where the last one ended. */
static bool write_step(struct report_file *file, int step, const float *values) {
  (void)step;
  MPI_Status status;
  int count = (int)file->distribution->values;
  double start = MPI_Wtime();
  int code = MPI_File_write_all(file->mpi.handle, values, count, MPI_FLOAT, &status);
  file->times->write_s += MPI_Wtime() - start;
  file->calls++;
  return mpi_file_moved(&file->mpi, &writing, code, &status, MPI_FLOAT, count, "values");
}

static bool read_step(struct report_file *file, int step, float *values) {
  (void)step;
  MPI_Status status;
  int count = (int)file->distribution->values;
  double start = MPI_Wtime();
  int code = MPI_File_read_all(file->mpi.handle, values, count, MPI_FLOAT, &status);
  file->times->read_s += MPI_Wtime() - start;
  file->calls++;
  return mpi_file_moved(&file->mpi, &reading, code, &status, MPI_FLOAT, count, "values");
}

static bool finish(struct report_file *file, bool sync) {
  return (!sync || mpi_file_sync(&file->mpi)) &&
         mpi_file_check_size(&file->mpi, report_file_bytes(file));
}

static bool close_file(struct report_file *file) { return mpi_file_close(&file->mpi); }

static void give_up(struct report_file *file) { mpi_file_give_up(&file->mpi); }

const struct backend backend_mpiio = {.name = "mpiio",
                                      .create = create,
                                      .open = open_existing,
                                      .write = write_step,
                                      .read = read_step,
                                      .finish = finish,
                                      .close = close_file,
                                      .give_up = give_up};
