#include "mpi_variant.h"

static void prepare(struct dump_file *file, bool writing) {
  file->writing = writing;
  file->mpi = (struct mpi_file){
      .comm = file->comm, .path = file->path, .times = file->times, .handle = MPI_FILE_NULL};
}

bool mpi_variant_create(struct dump_file *file, MPI_Datatype element, MPI_Datatype view,
                        MPI_Info info) {
  prepare(file, true);
  return mpi_file_create(&file->mpi, MPI_MODE_RDWR) &&
         mpi_file_set_view(&file->mpi, element, view, info);
}

bool mpi_variant_open(struct dump_file *file, MPI_Datatype element, MPI_Datatype view) {
  prepare(file, false);
  if (!mpi_file_open(&file->mpi) || !mpi_file_set_view(&file->mpi, element, view, MPI_INFO_NULL))
    return false;
  if (mpi_file_check_size(&file->mpi, dump_file_bytes(file)))
    return true;
  mpi_file_give_up(&file->mpi);
  return false;
}

bool mpi_variant_sync(struct dump_file *file) { return mpi_file_sync(&file->mpi); }

bool mpi_variant_close(struct dump_file *file) {
  bool whole = !file->writing || mpi_file_check_size(&file->mpi, dump_file_bytes(file));
  return whole && mpi_file_close(&file->mpi);
}

void mpi_variant_give_up(struct dump_file *file) { mpi_file_give_up(&file->mpi); }
