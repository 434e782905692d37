/* For the file's status; nothing of it without PnetCDF. */
#include "attempt.h"

#ifdef HAVE_PNETCDF

#include "netcdf.h"

bool netcdf_succeeded(MPI_Comm comm, const char *path, const struct attempt *attempt, int code) {
  return attempt_agreed(comm, path, attempt, code == NC_NOERR ? NULL : ncmpi_strerror(code));
}

#endif
