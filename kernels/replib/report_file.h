/* The report on its way to the disk, in one of two ways.
 *
 * Every function of a backend is collective and gives all ranks the same answer
 * (harness/attempt.h). After a failed create or open nothing is open; after any other failure
 * give_up must be called. */
#ifndef REPLIB_REPORT_FILE_H
#define REPLIB_REPORT_FILE_H

#include "distribution.h"
#include "harness/mpi_file.h"

struct report_file;

struct backend {
  const char *name;
  /* A new file, in place of an old one. NULL: this backend was left out of the build. */
  bool (*create)(struct report_file *file);
  /* An existing file, for reading; one that cannot hold exactly this report is refused. */
  bool (*open)(struct report_file *file);
  /* values: those of this rank in the step, run after run. */
  bool (*write)(struct report_file *file, int step, const float *values);
  bool (*read)(struct report_file *file, int step, float *values);
  /* After the last step: to storage if `sync`; false also if the file is shorter than it must be.
   */
  bool (*finish)(struct report_file *file, bool sync);
  bool (*close)(struct report_file *file);
  /* Closes after a failure, without a further message. */
  void (*give_up)(struct report_file *file);
};

struct report_file {
  MPI_Comm comm;
  const char *path;
  struct io_times *times;
  const struct options *options;
  const struct distribution_of_rank *distribution;
  int64_t calls; /* of this rank that moved data */

  /* Each backend uses its own of these. */
  struct mpi_file mpi;
  struct hdf5_report *hdf5;
};

/* Of the whole report, all its steps. */
int64_t report_file_bytes(const struct report_file *file);

extern const struct backend backend_mpiio, backend_h5p;

#endif
