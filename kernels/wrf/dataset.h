/* One netCDF file. Every function is collective, as harness/attempt.h describes. */
#ifndef WRF_DATASET_H
#define WRF_DATASET_H

#include "domain.h"
#include "harness/netcdf.h"
#include "harness/times.h"

enum { PATH_BYTES_MAX = 4096, DATE_BYTES = 19 /* "2000-01-01_00:00:00" */ };

struct dataset {
  MPI_Comm comm;
  char path[PATH_BYTES_MAX];
  struct io_times *times;
  int64_t calls; /* of this rank that moved data */
  int64_t bytes; /* of this rank */
  int id;
  int first_variable, records; /* say where the file ends */
  int fault;                   /* of the first call that failed on this rank */
};

/* Makes a new file in define mode (CDF-2); dataset_define_end ends that. */
bool dataset_create(struct dataset *file);
bool dataset_define_end(struct dataset *file);

/* An existing file, for reading; one of another grid, or whose end is missing, is refused. */
bool dataset_open(struct dataset *file, const struct domain *domain);

/* A collective call for floats. Its answer is kept: dataset_wrote and dataset_read_all return it.
 * All ranks must make all calls in between. A `count` of 0 takes part and moves nothing. */
void dataset_put(struct dataset *file, int variable, const MPI_Offset *start,
                 const MPI_Offset *count, const float *values);
void dataset_get(struct dataset *file, int variable, const MPI_Offset *start,
                 const MPI_Offset *count, float *values);
void dataset_put_date(struct dataset *file, int variable, int record, const char *date);
bool dataset_wrote(struct dataset *file);
bool dataset_read_all(struct dataset *file);

bool dataset_sync(struct dataset *file);
bool dataset_close_written(struct dataset *file); /* false also if its end is missing */
bool dataset_close(struct dataset *file);

/* Closes after a failure, without a further message. */
void dataset_give_up(struct dataset *file);

#endif
