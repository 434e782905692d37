/* PnetCDF's answers, joined as attempt.h describes. Only where PnetCDF is there. */
#ifndef HARNESS_NETCDF_H
#define HARNESS_NETCDF_H

#include "attempt.h"

#include <pnetcdf.h>

/* code: what a call of PnetCDF returned. */
bool netcdf_succeeded(MPI_Comm comm, const char *path, const struct attempt *attempt, int code);

#endif
