/* The HDF5 file. Every function is collective, as harness/attempt.h describes. */
#ifndef VPIC_PARTICLE_FILE_H
#define VPIC_PARTICLE_FILE_H

#include "harness/hdf5_file.h"
#include "options.h"
#include "particles.h"

struct particle_file {
  struct hdf5_file hdf5;
  int transfer;
  int64_t calls; /* of this rank that moved data */
};

/* A failure ends the program by MPI_Abort, after a message. */
void particle_file_write(struct particle_file *file, int step, struct particles *particles);
bool particle_file_read(struct particle_file *file, int step, struct particles *particles);

#endif
