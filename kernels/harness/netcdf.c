/* For the file's status; nothing of it without PnetCDF. */
#include "attempt.h"

#ifdef HAVE_PNETCDF

#include "netcdf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct attempt measuring = {
    "stat", "\nhint: the disk was full when it was written, or another run with other sizes "
            "wrote it"};

bool netcdf_succeeded(MPI_Comm comm, const char *path, const struct attempt *attempt, int code) {
  return attempt_agreed(comm, path, attempt, code == NC_NOERR ? NULL : ncmpi_strerror(code));
}

bool netcdf_has_size(MPI_Comm comm, const char *path, int64_t bytes) {
  struct stat status;
  char fault[96];
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank != 0)
    return attempt_agreed(comm, path, &measuring, NULL);
  if (stat(path, &status) != 0)
    return attempt_agreed(comm, path, &measuring, strerror(errno));
  snprintf(fault, sizeof fault, "the file holds %lld bytes, %lld expected",
           (long long)status.st_size, (long long)bytes);
  return attempt_agreed(comm, path, &measuring, status.st_size == bytes ? NULL : fault);
}

#endif
