/* PnetCDF's answers, joined as attempt.h describes. Only where PnetCDF is there. */
#ifndef HARNESS_NETCDF_H
#define HARNESS_NETCDF_H

#include "attempt.h"

#include <pnetcdf.h>
#include <stdint.h>

/* code: what a call of PnetCDF returned. */
bool netcdf_succeeded(MPI_Comm comm, const char *path, const struct attempt *attempt, int code);

/* Whether the file, as rank 0 sees it, has this size: what an MPI library that met a full disk and
 * said nothing leaves behind is shorter. Not timed. */
bool netcdf_has_size(MPI_Comm comm, const char *path, int64_t bytes);

#endif
