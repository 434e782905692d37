#define _GNU_SOURCE /* SEEK_HOLE */

#include "stored_file.h"

#include "attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAULT_BYTES_MAX = 96 };

static const struct attempt measuring = {
    "stat", "\nhint: the disk was full when it was written, or another run with other sizes "
            "wrote it"};

/* NULL, or the fault, maybe as a text in `room`. */
static const char *size_fault(const char *path, int64_t bytes, char room[FAULT_BYTES_MAX]) {
  struct stat status;
  if (stat(path, &status) != 0)
    return strerror(errno);
  snprintf(room, FAULT_BYTES_MAX, "the file holds %lld bytes, %lld expected",
           (long long)status.st_size, (long long)bytes);
  return status.st_size == bytes ? NULL : room;
}

static const char *hole_fault(const char *path, int64_t bytes, char room[FAULT_BYTES_MAX]) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return strerror(errno);
  off_t hole = lseek(descriptor, 0, SEEK_HOLE);
  close(descriptor);
  snprintf(room, FAULT_BYTES_MAX, "nothing was stored from byte %lld on", (long long)hole);
  return hole < 0 || hole >= bytes ? NULL : room;
}

bool stored_file_check_size(MPI_Comm comm, const char *path, int64_t bytes) {
  char room[FAULT_BYTES_MAX];
  int rank;
  MPI_Comm_rank(comm, &rank);
  return attempt_agreed(comm, path, &measuring, rank == 0 ? size_fault(path, bytes, room) : NULL);
}

bool stored_file_check_whole(MPI_Comm comm, const char *path, int64_t bytes) {
  char room[FAULT_BYTES_MAX];
  const char *fault = NULL;
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0)
    fault = size_fault(path, bytes, room);
  if (rank == 0 && fault == NULL)
    fault = hole_fault(path, bytes, room);
  return attempt_agreed(comm, path, &measuring, fault);
}
