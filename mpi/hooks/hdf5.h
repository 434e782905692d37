/* Alignment of the objects in an HDF5 file, given from outside: HDF5 itself takes it from the
 * program only, in the file access property list. And who is HDF5. */
#ifndef FOREBAY_MPI_HDF5_H
#define FOREBAY_MPI_HDF5_H

#include <stdbool.h>

/* This thread is in an H5Fcreate to which an alignment was given; what it opens by MPI-IO is that
 * file. */
bool hdf5_is_aligning(void);

/* Whether the object that has code at this address, a library or the program, is or contains HDF5.
 */
bool hdf5_is_at(const void *address);

#endif
