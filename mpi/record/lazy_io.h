/* Lazy I/O of MPI-IO's files, where their file system offers it (include/lazy_ioctl.h).
 *
 * In its nonatomic mode MPI-IO promises that a rank sees what another has written only after
 * MPI_File_sync or close of the one, and sync or open of the other. So the mount may buffer and
 * cache in between. */
#ifndef FOREBAY_MPI_LAZY_IO_H
#define FOREBAY_MPI_LAZY_IO_H

#include "record/file_record.h"

#include <mpi.h>
#include <stdbool.h>

/* After MPI_File_open: asks for it, for all descriptors of the file, and counts the open. */
void lazy_begin(struct file *file);

/* A descriptor that the MPI opens later than in MPI_File_open: asks if the file wants it. */
void lazy_begin_late(struct file *file, int descriptor);

/* Writes back, and forgets what is cached. Returns the error number of writing back, or 0. */
int lazy_sync(struct file *file);

/* The rank has read or written the file. The lock of the file is held. */
void lazy_note_data(struct file *file, bool is_write);

/* Writes back, and keeps what is cached: what other ranks write after they have heard of this one
 * stays. An error is the result of the next lazy_sync. */
void lazy_write_back(struct file *file);

/* The same for all files. */
void lazy_write_back_all(void);

/* After other ranks have written back: forgets what is cached of all files that this rank has used.
 */
void lazy_forget_all(void);

/* The file is strict while at least one handle is in atomic mode. Returns as lazy_sync. */
int lazy_set_atomic(struct file *file, MPI_File handle, bool is_atomic);

#endif
