/* One file that all ranks share through MPI-IO, and the time spent in it. All functions are
 * collective, as attempt.h describes, except where one says otherwise. */
#ifndef HARNESS_MPI_FILE_H
#define HARNESS_MPI_FILE_H

#include "attempt.h"
#include "times.h"

#include <stdint.h>

struct mpi_file {
  MPI_Comm comm;
  const char *path;
  struct io_times *times;
  MPI_File handle; /* MPI_FILE_NULL while it is not open */
};

/* Deletes a file, if it is there: striping and other hints act only on creation, and a longer old
 * file would keep its tail. Not timed. */
bool mpi_file_delete(MPI_Comm comm, const char *path);

/* A new file in place of an old one. access: MPI_MODE_WRONLY or MPI_MODE_RDWR. */
bool mpi_file_create(struct mpi_file *file, int access);

/* An existing file, for reading. */
bool mpi_file_open(struct mpi_file *file);

/* On a failure the file is closed. */
bool mpi_file_set_view(struct mpi_file *file, MPI_Datatype element, MPI_Datatype type,
                       MPI_Info info);

/* Whether a call that returned `code` moved `count` items of `type`: a library may move less and
 * still report success. items: their name in the message. */
bool mpi_file_moved(const struct mpi_file *file, const struct attempt *attempt, int code,
                    const MPI_Status *status, MPI_Datatype type, int count, const char *items);

/* The same for one rank, without a word: NULL, or the fault as a text in `room`. */
enum { MPI_FAULT_BYTES_MAX = MPI_MAX_ERROR_STRING + 64 };
const char *mpi_file_fault(int code, const MPI_Status *status, MPI_Datatype type, int count,
                           const char *items, char room[MPI_FAULT_BYTES_MAX]);

/* After a failed independent write, before this rank waits for others, on itself alone. ROMIO
 * (3.2.1) keeps its lock on the file when a write in a sieving buffer fails, and the others would
 * wait for it forever. Closing any descriptor of a file drops the locks of a process on it. */
void mpi_file_drop_locks(const struct mpi_file *file);

bool mpi_file_sync(struct mpi_file *file);

/* Not timed. Some MPI libraries (Open MPI 4.1's ompio) report success for a collective write that
 * met a full disk; the missing tail gives it away. */
bool mpi_file_check_size(struct mpi_file *file, int64_t bytes);

bool mpi_file_close(struct mpi_file *file);

/* Closes after a failure, without a further message. */
void mpi_file_give_up(struct mpi_file *file);

#endif
