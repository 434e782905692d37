/* For the calls of HDF5; nothing of it without the library. */
#include "attempt.h"

#ifdef HAVE_HDF5

#include "hdf5_file.h"

#include "message.h"
#include "mpi_file.h"

#include <stdio.h>

static const struct attempt creating = {"H5Fcreate", hint_no_place};
static const struct attempt opening = {
    "H5Fopen", "\nhint: what is read must have been written by an earlier run"};
static const struct attempt measuring = {"MPI_File_get_size", hint_out_of_space};
static const struct attempt syncing = {"H5Fflush", hint_out_of_space};
static const struct attempt closing = {"H5Fclose", hint_out_of_space};

static herr_t innermost(unsigned depth, const H5E_error2_t *error, void *client) {
  if (depth == 0)
    snprintf(client, 128, "%s", error->desc != NULL ? error->desc : "failed");
  return 0;
}

bool hdf5_check(struct hdf5_file *file, int64_t answer) {
  if (answer < 0 && file->fault[0] == '\0') {
    snprintf(file->fault, sizeof file->fault, "failed");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, file->fault);
  }
  return answer >= 0;
}

bool hdf5_agreed(struct hdf5_file *file, const struct attempt *attempt) {
  const char *fault = file->fault[0] != '\0' ? file->fault : NULL;
  return attempt_agreed(file->comm, file->path, attempt, fault);
}

void hdf5_check_or_abort(struct hdf5_file *file, const struct attempt *attempt, int64_t answer) {
  if (hdf5_check(file, answer))
    return;
  int rank;
  MPI_Comm_rank(file->comm, &rank);
  complain("%s on rank %d: %s: %s%s", attempt->name, rank, file->path, file->fault, attempt->hint);
  MPI_Abort(file->comm, STATUS_FAILED);
}

static hid_t parallel_access(const struct hdf5_file *file) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* the messages are ours */
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, file->comm, MPI_INFO_NULL);
  return access;
}

bool hdf5_file_create(struct hdf5_file *file) {
  if (!mpi_file_delete(file->comm, file->path))
    return false;
  file->writing = true;
  hid_t access = parallel_access(file);
  double start = MPI_Wtime();
  file->id = H5Fcreate(file->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  file->times->open_s += MPI_Wtime() - start;
  hdf5_check(file, file->id);
  H5Pclose(access);
  return hdf5_agreed(file, &creating);
}

bool hdf5_file_open(struct hdf5_file *file) {
  hid_t access = parallel_access(file);
  double start = MPI_Wtime();
  file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
  file->times->open_s += MPI_Wtime() - start;
  hdf5_check(file, file->id);
  H5Pclose(access);
  return hdf5_agreed(file, &opening);
}

struct hdf5_piece hdf5_piece_of(int dimensions, const hsize_t *total, const hsize_t *first,
                                const hsize_t *count, bool collective) {
  struct hdf5_piece piece = {.memory = H5Screate_simple(dimensions, count, NULL),
                             .file = H5Screate_simple(dimensions, total, NULL),
                             .transfer = H5Pcreate(H5P_DATASET_XFER)};
  H5Sselect_hyperslab(piece.file, H5S_SELECT_SET, first, NULL, count, NULL);
  H5Pset_dxpl_mpio(piece.transfer, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  return piece;
}

void hdf5_piece_close(const struct hdf5_piece *piece) {
  H5Pclose(piece->transfer);
  H5Sclose(piece->file);
  H5Sclose(piece->memory);
}

void hdf5_wrote(struct hdf5_file *file, haddr_t begin, int64_t bytes) {
  int64_t end = begin == HADDR_UNDEF ? 0 : (int64_t)begin + bytes;
  file->end = end > file->end ? end : file->end;
}

bool hdf5_has_length(struct hdf5_file *file, hid_t dataset, int64_t length) {
  hid_t space = H5Dget_space(dataset);
  if (!hdf5_check(file, space))
    return false;
  hssize_t found = H5Sget_simple_extent_npoints(space);
  H5Sclose(space);
  if (found != length && file->fault[0] == '\0')
    snprintf(file->fault, sizeof file->fault, "a dataset has %lld values, %lld expected",
             (long long)found, (long long)length);
  return found == length;
}

bool hdf5_file_is_whole(struct hdf5_file *file) {
  MPI_File *handle = NULL;
  MPI_Offset size = -1;
  char fault[96];
  MPI_Barrier(file->comm); /* other ranks may still be writing */
  if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, (void **)&handle) >= 0 && handle != NULL)
    MPI_File_get_size(*handle, &size);
  snprintf(fault, sizeof fault, "the file holds %lld bytes, at least %lld expected",
           (long long)size, (long long)file->end);
  return attempt_agreed(file->comm, file->path, &measuring, size >= file->end ? NULL : fault);
}

void hdf5_file_sync(struct hdf5_file *file) {
  double start = MPI_Wtime();
  herr_t code = H5Fflush(file->id, H5F_SCOPE_GLOBAL);
  file->times->sync_s += MPI_Wtime() - start;
  hdf5_check_or_abort(file, &syncing, code);
}

bool hdf5_file_close(struct hdf5_file *file) {
  double start = MPI_Wtime();
  herr_t code = H5Fclose(file->id);
  file->times->close_s += MPI_Wtime() - start;
  file->id = -1;
  if (file->writing)
    hdf5_check_or_abort(file, &closing, code);
  hdf5_check(file, code);
  return hdf5_agreed(file, &closing);
}

void hdf5_file_give_up(struct hdf5_file *file) {
  if (file->writing) {
    MPI_Barrier(file->comm); /* whoever has a message has printed it */
    MPI_Abort(file->comm, STATUS_FAILED);
  }
  if (file->id >= 0)
    H5Fclose(file->id);
  file->id = -1;
}

#endif
