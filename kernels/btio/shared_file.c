#include "shared_file.h"

#include "message.h"

#include <stdio.h>

enum { FAULT_BYTES_MAX = MPI_MAX_ERROR_STRING + 64 };

/* What is tried, and what to do if it fails. */
struct attempt {
  const char *name;
  const char *hint;
};

static const char out_of_space[] =
    "\nhint: is the file system full, or a quota or a file size limit (ulimit -f) reached?";

static const char no_place[] =
    "\nhint: the output directory must exist, and you must be allowed to write in it";

static const struct attempt removal = {"MPI_File_delete", no_place};
static const struct attempt creation = {"MPI_File_open", no_place};
static const struct attempt opening = {
    "MPI_File_open", "\nhint: btio reads what an earlier run, with 'w' in its deck, has written"};
static const struct attempt viewing = {"MPI_File_set_view", ""};
static const struct attempt writing = {"MPI_File_write_at_all", out_of_space};
static const struct attempt reading = {"MPI_File_read_at_all", ""};
static const struct attempt syncing = {"MPI_File_sync", out_of_space};
static const struct attempt measuring = {
    "MPI_File_get_size",
    "\nhint: the disk was full when it was written, or it belongs to another deck"};
static const struct attempt closing = {"MPI_File_close", out_of_space};

/* Joins the ranks' answers; fault is NULL on a rank where the attempt succeeded. */
static bool agreed(const struct shared_file *file, const struct attempt *attempt,
                   const char *fault) {
  int rank, ranks, failing;
  MPI_Comm_rank(file->comm, &rank);
  MPI_Comm_size(file->comm, &ranks);
  int mine = fault == NULL ? ranks : rank;
  MPI_Allreduce(&mine, &failing, 1, MPI_INT, MPI_MIN, file->comm);
  if (failing == rank)
    complain("%s on rank %d: %s: %s%s", attempt->name, rank, file->path, fault, attempt->hint);
  return failing == ranks;
}

static bool succeeded(const struct shared_file *file, const struct attempt *attempt, int code) {
  char fault[FAULT_BYTES_MAX];
  int length;
  if (code != MPI_SUCCESS)
    MPI_Error_string(code, fault, &length);
  return agreed(file, attempt, code == MPI_SUCCESS ? NULL : fault);
}

/* A library may move less than it was asked to and still report success. */
static bool moved_all(const struct shared_file *file, const struct attempt *attempt, int code,
                      const MPI_Status *status) {
  char fault[FAULT_BYTES_MAX];
  int points = 0;
  if (code != MPI_SUCCESS)
    return succeeded(file, attempt, code);
  MPI_Get_count(status, file->layout->point, &points);
  snprintf(fault, sizeof fault, "moved %d of %lld points", points,
           (long long)file->partition->points);
  return agreed(file, attempt, points == file->partition->points ? NULL : fault);
}

static bool open_with_view(struct shared_file *file, const struct attempt *attempt, int mode) {
  double start = MPI_Wtime();
  int code = MPI_File_open(file->comm, file->path, mode, MPI_INFO_NULL, &file->handle);
  file->times->open_s += MPI_Wtime() - start;
  if (!succeeded(file, attempt, code))
    return false;
  start = MPI_Wtime();
  code = MPI_File_set_view(file->handle, 0, file->layout->point, file->layout->file, "native",
                           MPI_INFO_NULL);
  file->times->open_s += MPI_Wtime() - start;
  if (succeeded(file, &viewing, code))
    return true;
  shared_file_give_up(file);
  return false;
}

static bool delete_old(const struct shared_file *file) {
  int rank, code = MPI_SUCCESS, class = MPI_SUCCESS;
  MPI_Comm_rank(file->comm, &rank);
  if (rank == 0)
    code = MPI_File_delete(file->path, MPI_INFO_NULL);
  if (code != MPI_SUCCESS)
    MPI_Error_class(code, &class);
  return succeeded(file, &removal, class == MPI_ERR_NO_SUCH_FILE ? MPI_SUCCESS : code);
}

bool shared_file_create(struct shared_file *file) {
  return delete_old(file) && open_with_view(file, &creation, MPI_MODE_CREATE | MPI_MODE_WRONLY);
}

bool shared_file_open(struct shared_file *file) {
  return open_with_view(file, &opening, MPI_MODE_RDONLY);
}

/* Offsets into the view count the points of this rank, not those of the file. */
static MPI_Offset offset_of(const struct shared_file *file, int dump) {
  return (MPI_Offset)dump * file->partition->points;
}

bool shared_file_write(struct shared_file *file, int dump, const double *values) {
  MPI_Status status;
  double start = MPI_Wtime();
  int code = MPI_File_write_at_all(file->handle, offset_of(file, dump), values, 1,
                                   file->layout->memory, &status);
  file->times->write_s += MPI_Wtime() - start;
  return moved_all(file, &writing, code, &status);
}

bool shared_file_read(struct shared_file *file, int dump, double *values) {
  MPI_Status status;
  double start = MPI_Wtime();
  int code = MPI_File_read_at_all(file->handle, offset_of(file, dump), values, 1,
                                  file->layout->memory, &status);
  file->times->read_s += MPI_Wtime() - start;
  return moved_all(file, &reading, code, &status);
}

bool shared_file_sync(struct shared_file *file) {
  double start = MPI_Wtime();
  int code = MPI_File_sync(file->handle);
  file->times->sync_s += MPI_Wtime() - start;
  return succeeded(file, &syncing, code);
}

bool shared_file_has_size(struct shared_file *file, int64_t bytes) {
  char fault[FAULT_BYTES_MAX];
  MPI_Offset size = -1;
  if (!succeeded(file, &measuring, MPI_File_get_size(file->handle, &size)))
    return false;
  snprintf(fault, sizeof fault, "the file holds %lld bytes, %lld expected", (long long)size,
           (long long)bytes);
  return agreed(file, &measuring, size == bytes ? NULL : fault);
}

bool shared_file_close(struct shared_file *file) {
  double start = MPI_Wtime();
  int code = MPI_File_close(&file->handle);
  file->times->close_s += MPI_Wtime() - start;
  return succeeded(file, &closing, code);
}

void shared_file_give_up(struct shared_file *file) {
  if (file->handle != MPI_FILE_NULL)
    MPI_File_close(&file->handle);
}
