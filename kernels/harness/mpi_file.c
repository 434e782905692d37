#include "mpi_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const struct attempt removal = {"MPI_File_delete", hint_no_place};
static const struct attempt creation = {"MPI_File_open", hint_no_place};
static const struct attempt opening = {
    "MPI_File_open", "\nhint: what is read must have been written by an earlier run"};
static const struct attempt viewing = {"MPI_File_set_view", ""};
static const struct attempt syncing = {"MPI_File_sync", hint_out_of_space};
static const struct attempt measuring = {
    "MPI_File_get_size",
    "\nhint: the disk was full when it was written, or another run with other sizes wrote it"};
static const struct attempt closing = {"MPI_File_close", hint_out_of_space};

static bool succeeded(const struct mpi_file *file, const struct attempt *attempt, int code) {
  return attempt_succeeded(file->comm, file->path, attempt, code);
}

bool mpi_file_delete(MPI_Comm comm, const char *path) {
  int rank, code = MPI_SUCCESS, class = MPI_SUCCESS;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0)
    code = MPI_File_delete(path, MPI_INFO_NULL);
  if (code != MPI_SUCCESS)
    MPI_Error_class(code, &class);
  return attempt_succeeded(comm, path, &removal,
                           class == MPI_ERR_NO_SUCH_FILE ? MPI_SUCCESS : code);
}

static bool open_timed(struct mpi_file *file, const struct attempt *attempt, int mode) {
  double start = MPI_Wtime();
  int code = MPI_File_open(file->comm, file->path, mode, MPI_INFO_NULL, &file->handle);
  file->times->open_s += MPI_Wtime() - start;
  return succeeded(file, attempt, code);
}

bool mpi_file_create(struct mpi_file *file, int access) {
  return mpi_file_delete(file->comm, file->path) &&
         open_timed(file, &creation, MPI_MODE_CREATE | access);
}

bool mpi_file_open(struct mpi_file *file) { return open_timed(file, &opening, MPI_MODE_RDONLY); }

bool mpi_file_set_view(struct mpi_file *file, MPI_Datatype element, MPI_Datatype type,
                       MPI_Info info) {
  double start = MPI_Wtime();
  int code = MPI_File_set_view(file->handle, 0, element, type, "native", info);
  file->times->open_s += MPI_Wtime() - start;
  if (succeeded(file, &viewing, code))
    return true;
  mpi_file_give_up(file);
  return false;
}

const char *mpi_file_fault(int code, const MPI_Status *status, MPI_Datatype type, int count,
                           const char *items, char room[MPI_FAULT_BYTES_MAX]) {
  int moved = 0, length;
  if (code != MPI_SUCCESS) {
    MPI_Error_string(code, room, &length);
    return room;
  }
  MPI_Get_count(status, type, &moved);
  snprintf(room, MPI_FAULT_BYTES_MAX, "moved %d of %d %s", moved, count, items);
  return moved == count ? NULL : room;
}

bool mpi_file_moved(const struct mpi_file *file, const struct attempt *attempt, int code,
                    const MPI_Status *status, MPI_Datatype type, int count, const char *items) {
  char room[MPI_FAULT_BYTES_MAX];
  const char *fault = mpi_file_fault(code, status, type, count, items, room);
  return attempt_agreed(file->comm, file->path, attempt, fault);
}

void mpi_file_drop_locks(const struct mpi_file *file) {
  int descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0)
    close(descriptor);
}

bool mpi_file_sync(struct mpi_file *file) {
  double start = MPI_Wtime();
  int code = MPI_File_sync(file->handle);
  file->times->sync_s += MPI_Wtime() - start;
  return succeeded(file, &syncing, code);
}

bool mpi_file_check_size(struct mpi_file *file, int64_t bytes) {
  char fault[96];
  MPI_Offset size = -1;
  MPI_Barrier(file->comm); /* other ranks may still be writing */
  if (!succeeded(file, &measuring, MPI_File_get_size(file->handle, &size)))
    return false;
  snprintf(fault, sizeof fault, "the file holds %lld bytes, %lld expected", (long long)size,
           (long long)bytes);
  return attempt_agreed(file->comm, file->path, &measuring, size == bytes ? NULL : fault);
}

bool mpi_file_close(struct mpi_file *file) {
  double start = MPI_Wtime();
  int code = MPI_File_close(&file->handle);
  file->times->close_s += MPI_Wtime() - start;
  return succeeded(file, &closing, code);
}

void mpi_file_give_up(struct mpi_file *file) {
  if (file->handle != MPI_FILE_NULL)
    MPI_File_close(&file->handle);
}
